import { expect, it, vi } from 'vitest';
import { Log } from '#lib/contract/log.js';
import { atEnd } from '../support/cleanup.js';
import { until } from '../support/wait.js';
import { claimed, idle } from './slow-engine.js';

it('logs in one line how many jobs are left whose end Redis did not confirm', async () => {
  const warned = vi.spyOn(Log.prototype, 'warn').mockImplementation(() => {});
  atEnd(() => warned.mockRestore());
  const { engine, pool } = await idle({ shutdown: { timeout: 0, grace: 0 } });
  pool.claimer.exchangeAnyway();
  await until(() => engine.exchanges.length === 2);
  engine.exchanges[1]!.answer.open(claimed(['a', 'b', 'c']));
  await until(() => engine.exchanges.at(-1)!.call.settled.length === 3);
  expect(await pool.drain()).toMatchObject({ finished: 0, released: [] });
  expect(warned.mock.calls.flat()).toEqual([
    expect.stringMatching(/^queue 'work': Redis did not confirm .* 3 jobs/),
  ]);
});
