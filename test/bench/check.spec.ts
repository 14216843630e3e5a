import { Redis } from 'ioredis';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { proofs } from '../../bench/src/check/proofs.js';
import { readOptions } from '../../bench/src/options.js';
import { useServer } from '../support/server.js';
import { contenderThat, type Lie } from './liar.js';

const server = useServer();
let control: Redis;
beforeAll(async () => {
  control = new Redis(server.url);
  // Connected before the first test, which would seem to have left the socket.
  await control.ping();
});
beforeEach(() => control.flushall());
afterAll(() => control.disconnect());
afterEach(() => void vi.useRealTimers());

/** Those that compare with a clock, which here must not go on while the machine stalls. */
const BY_THE_CLOCK = ['delays', 'schedules', 'rates'];

async function prove(name: string, lie?: Lie): Promise<void> {
  const contender = contenderThat(lie, (id) => control.set(`left-${id}`, ''));
  const proof = proofs.find((one) => one.name === name)!;
  const stand = { contender, url: server.url, control };
  if (!BY_THE_CLOCK.includes(name)) return proof.prove(stand);
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance', 'Date'] });
  const running = proof.prove(stand);
  // It may reject while it is told the time, before the test awaits it.
  running.catch(() => undefined);
  await vi.advanceTimersByTimeAsync(15_000);
  vi.useRealTimers();
  return running;
}

describe('the check of a contender', () => {
  it.each(['once', 'removed', 'retries', 'delays', 'schedules', 'results', 'groups', 'turns', 'rates'])(
    'passes one that keeps its word: %s',
    async (name) => {
      await expect(prove(name)).resolves.toBeUndefined();
    },
  );

  it.each<{ lie: Lie; proof: string; why: RegExp }>([
    { lie: 'once', proof: 'once', why: /job 3 ran 2 times where 1 was expected/ },
    { lie: 'removed', proof: 'removed', why: /1,000 completed jobs left 1000 more elements/ },
    { lie: 'retries', proof: 'retries', why: /ran again after .* ms instead of 1500/ },
    { lie: 'attempts', proof: 'retries', why: /job 5 ran 4 times instead of 3/ },
    { lie: 'delays', proof: 'delays', why: /job \d+ started after/ },
    { lie: 'schedules', proof: 'schedules', why: /jobs were made where .* were due/ },
    { lie: 'results', proof: 'results', why: /what is kept is undefined/ },
    { lie: 'groups', proof: 'groups', why: /job \d+ started while another one of its group ran/ },
    { lie: 'order', proof: 'groups', why: /the jobs of a group ran in the order 45, 40/ },
    {
      lie: 'turns',
      proof: 'turns',
      why: /the last group was served as number 209 of the jobs, not within 20/,
    },
    { lie: 'rates', proof: 'rates', why: /all jobs started within \d+ ms, which takes at least 1997 ms/ },
  ])('detects one that lies about $lie', async ({ proof, lie, why }) => {
    await expect(prove(proof, lie)).rejects.toThrow(why);
  });

  it('has a proof for everything that can be offered', () => {
    const shown = proofs.flatMap(({ needs }) => needs ?? []);
    expect(shown.toSorted()).toEqual([
      'acknowledged',
      'delays',
      'events',
      'groups',
      'rates',
      'replicas',
      'results',
      'retries',
      'schedules',
      'turns',
    ]);
  });
});

describe('the command line of the bench', () => {
  it('checks instead of measuring if --check is given', () => {
    expect(readOptions(['--check', '--contenders', 'bee-queue,groupmq'])).toMatchObject({
      check: true,
      contenders: ['bee-queue', 'groupmq'],
    });
    expect(readOptions([])).toMatchObject({ check: false });
  });
});
