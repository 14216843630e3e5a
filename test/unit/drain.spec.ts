import { expect, it, vi } from 'vitest';
import type { ExchangeAnswer } from '#lib/contract/engine.js';
import { Log } from '#lib/contract/log.js';
import { atEnd } from '../support/cleanup.js';
import { until } from '../support/wait.js';
import { claimed, idle } from './slow-engine.js';

it('logs in one line how many jobs are left whose end Redis did not confirm', async () => {
  const warned = vi.spyOn(Log.prototype, 'warn').mockImplementation(() => {});
  atEnd(() => warned.mockRestore());
  let ended = 0;
  const { engine, pool } = await idle({
    run: () => {
      ended += 1;
    },
    shutdown: { timeout: 0, grace: 0 },
  });
  pool.claimer.exchangeAnyway();
  await until(() => engine.exchanges.length === 2);
  engine.exchanges[1]!.answer.open(claimed(['a', 'b', 'c']));
  await until(() => ended === 3);
  expect(await pool.drain()).toMatchObject({ finished: 0, released: [] });
  expect(warned.mock.calls.flat()).toEqual([
    expect.stringMatching(/^queue 'work': Redis did not confirm .* 3 jobs/),
  ]);
});

it('logs at most ten lines in a second of runs whose job another worker has, and the number of the others', async () => {
  const warned = vi.spyOn(Log.prototype, 'warn').mockImplementation(() => {});
  atEnd(() => warned.mockRestore());
  const { engine, pool } = await idle();
  pool.claimer.exchangeAnyway();
  await until(() => engine.exchanges.length === 2);
  const lost = Array.from({ length: 50 }, (_, i) => `job-${i}`);
  engine.exchanges[1]!.answer.open({ ...claimed(), lost } as ExchangeAnswer);
  await until(() => warned.mock.calls.length > 0);
  await pool.drain();
  const lines = warned.mock.calls.flat();
  expect(lines).toHaveLength(11);
  expect(lines[10]).toMatch(/^queue 'work': 40 more runs that ended too late within a second/);
});
