import { describe, expect, it } from 'vitest';
import { payloadOf } from '../../bench/src/contender.js';
import { listen } from '../../bench/src/measure/listen.js';
import type { Lab, Scenario } from '../../bench/src/scenario.js';
import { consume, consume1 } from '../../bench/src/scenarios/consume.js';
import { failing } from '../../bench/src/scenarios/failing.js';
import { await1ms, await50ms, burn } from '../../bench/src/scenarios/handlers.js';
import { payload1k } from '../../bench/src/scenarios/payloads.js';
import { watched } from '../../bench/src/scenarios/watched.js';
import { useRedis } from '../support/redis.js';
import { MemoryContender, type Faults } from './memory-contender.js';

const redis = useRedis();
const JOBS = 100;
/** With its warm-up. */
const ALL = 120;

async function take(scenario: Scenario, faults: Faults = {}) {
  const contender = new MemoryContender(faults);
  const lab = labOf(contender);
  await scenario.prepare?.(lab);
  return { contender, figures: await scenario.measure(lab) };
}

function labOf(contender: MemoryContender): Lab {
  return { contender, url: redis.url, jobs: JOBS, control: redis.admin, progress: () => {} };
}

const keysOf = ({ figures }: Scenario) => figures.map(({ key }) => key);

describe('a measurement of working off', () => {
  it.each([consume, consume1, await1ms, burn, failing, watched, payload1k])(
    'of $name has every figure, and ends when all is acknowledged and closed',
    async (scenario) => {
      const { contender, figures } = await take(scenario);
      expect(contender.acknowledged).toBe(ALL);
      expect(contender.closed).toBe(contender.opened.length);
      for (const key of keysOf(scenario)) expect([key, Number.isFinite(figures[key])]).toEqual([key, true]);
      for (const key of keysOf(scenario).filter((one) => /PerSecond/i.test(one)))
        expect([key, figures[key]! > 0]).toEqual([key, true]);
    },
  );

  it.each([consume, await1ms, failing, watched])('of $name fails when a job runs twice', async (scenario) => {
    // A job of the warm-up, so that others come after it.
    await expect(take(scenario, { twice: 3 })).rejects.toThrow('job 3 ran 2 times, not 1');
  });

  it('fails when a job runs again while the last ones are acknowledged', async () => {
    await expect(take(consume, { twiceAtTheEnd: 3 })).rejects.toThrow('job 3 ran 2 times, not 1');
  });

  it('fails when a job runs that was never added', async () => {
    await expect(take(consume, { twiceAtTheEnd: ALL })).rejects.toThrow(`job ${ALL} was never added`);
  });
});

describe('a handler that takes time', () => {
  it('limits the throughput to what the title says', async () => {
    expect(burn.title).toContain('at most 5,000/s');
    expect((await take(burn)).figures['perSecond']).toBeLessThanOrEqual(5_000);
    expect(await1ms.title).toContain('at most 100,000/s');
    expect(await50ms.title).toContain('at most 2,000/s');
  });
});

describe('a measurement with retries', () => {
  it('has the failing jobs run twice, and not more often', async () => {
    await expect(take(failing, { twice: 10 })).rejects.toThrow('job 10 ran 3 times, not 2');
  });

  it('passes the retry options to the producer and to the worker', async () => {
    const { contender } = await take(failing);
    const retry = { attempts: 3, backoff: 'fixed', delayMs: 100 };
    expect(contender.opened.map((one) => one.retry)).toEqual([retry, retry]);
  });
});

describe('a measurement with a subscriber', () => {
  it('fails when a completion event is missing or comes twice', async () => {
    await expect(take(watched, { stutter: 5 })).rejects.toThrow(
      `${ALL + 1} completions were heard, not ${ALL}`,
    );

    const contender = new MemoryContender();
    const listener = await listen(labOf(contender), 1, 10);
    await expect(listener.lastHeardAt()).rejects.toThrow('0 completions were heard, not 1');
    expect(contender.closed).toBe(1);
  });
});

describe('a measurement with payloads', () => {
  it('carries as many bytes as it says', () => {
    for (const bytes of [200, 1_024, 102_400, 1_048_576])
      expect(JSON.stringify(payloadOf(bytes, 12_345))).toHaveLength(bytes);
  });

  it('fails when they do not arrive', async () => {
    await expect(take(payload1k, { losesNotes: true })).rejects.toThrow('has lost its payload');
  });
});
