import { beforeEach, expect, it } from 'vitest';
import type { RungExchange } from '#lib/engine/engine.js';
import { isBlocked } from '../support/blocked.js';
import { useServer } from '../support/server.js';
import { LEASE_MS, QUEUE, useQueue, WORKER } from './support.js';

// Of the spec's own, since a test makes it forget its scripts: one that is sent again comes later than what was said behind it.
const q = useQueue({ server: useServer() });

/** The worker has spoken once, and its bell has a connection. */
beforeEach(async () => {
  await q.exchange({ want: 0 });
  await q.engine.awaitBell([QUEUE], 1);
});

const call = (more = {}) => ({
  worker: WORKER,
  seq: 2,
  leaseMs: LEASE_MS,
  want: 10,
  maySuspect: true,
  settled: [],
  ...more,
});

function leave(maxMs = 10_000): Promise<RungExchange> {
  const left = q.engine.exchangeAtBell(QUEUE, call(), maxMs);
  expect(left).not.toBeNull();
  return left!;
}

function claimed({ answer }: RungExchange): string[] | string {
  return answer.kind === 'exchanged' ? answer.claimed.map(({ id }) => id) : answer.kind;
}

it('is made the moment the bell rings', async () => {
  const left = leave();
  await isBlocked(q.redis);
  await q.add('a');
  // Redis has made it before it answers to anybody else.
  expect(await q.admin.smembers(q.key('active'))).toEqual(['a']);
  const { rung, ...answer } = await left;
  expect([rung, claimed({ rung, ...answer })]).toEqual([true, ['a']]);
  expect(await q.wasRung()).toBe(false);
});

it('is made when the wait is over, or is interrupted', async () => {
  const over = await leave(20);
  expect([over.rung, claimed(over)]).toEqual([false, []]);
  const left = q.engine.exchangeAtBell(QUEUE, call({ seq: 3 }), 10_000)!;
  await isBlocked(q.redis);
  q.engine.interruptBell();
  const interrupted = await left;
  expect([interrupted.rung, claimed(interrupted)]).toEqual([false, []]);
});

it('changes nothing where it was made elsewhere meanwhile, or a later one was', async () => {
  const left = leave();
  await isBlocked(q.redis);
  expect(await q.exchanged({ seq: 2, want: 10 })).toMatchObject({ claimed: [] });
  await q.add('a');
  const repeated = await left;
  expect([repeated.rung, claimed(repeated)]).toEqual([true, []]);
  expect(await q.list('wait')).toEqual(['a']);

  const old = q.engine.exchangeAtBell(QUEUE, call({ seq: 3 }), 10_000)!;
  await isBlocked(q.redis);
  expect(await q.exchanged({ seq: 4, want: 0 })).toMatchObject({ claimed: [] });
  await q.engine.ring(QUEUE);
  expect(await old).toEqual({ rung: true, answer: expect.objectContaining({ kind: 'stale' }) });
  expect(await q.list('wait')).toEqual(['a']);
});

it('is made by a server that was told to forget its scripts', async () => {
  const left = leave();
  await isBlocked(q.redis);
  await q.admin.script('FLUSH', 'SYNC');
  await q.add('a');
  expect(claimed(await left)).toEqual(['a']);
});

it('is not left where the bell has no connection yet', () => {
  expect(q.engineWith({}).exchangeAtBell(QUEUE, call(), 10_000)).toBeNull();
});
