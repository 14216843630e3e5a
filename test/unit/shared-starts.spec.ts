import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import type { ExchangeAnswer, ExchangeCall } from '#lib/contract/engine.js';
import type { ShareCall } from '#lib/contract/limit-verbs.js';
import { RedisUnavailableError } from '#lib/errors.js';
import { MemoryEngine } from '#lib/memory/memory-engine.js';
import { SharedStarts } from '#lib/worker/shared-starts.js';
import { LIMITS } from '../scripts/support.js';
import { atEnd } from '../support/cleanup.js';
import { latch } from '../support/wait.js';

const LEASE_MS = 100;
const EXCHANGED: ExchangeAnswer = {
  kind: 'exchanged',
  lost: [],
  claimed: [],
  claimedAt: 0,
  isCut: false,
  supply: 'empty',
  dueInMs: null,
  leaseInMs: null,
  scheduleInMs: null,
  held: 0,
};

/** A limit of two places, and a worker whose calls are seen and answered when the test says so. */
async function worker() {
  const engine = new MemoryEngine({ limitsOf: () => LIMITS });
  atEnd(() => engine.close());
  await engine.limits.set('', 's:api', 'code', { concurrency: 2 });
  const shares: ShareCall[] = [];
  const exchanges: ReturnType<typeof latch<ExchangeAnswer | Error>>[] = [];
  const wanted: number[] = [];
  const held = { fails: false, never: false, until: undefined as Promise<void> | undefined };
  const starts = new SharedStarts({
    engine: {
      exchange: async (_: string, { want }: ExchangeCall) => {
        const answer = latch<ExchangeAnswer | Error>();
        exchanges.push(answer);
        wanted.push(want);
        const found = await answer.promise;
        if (found instanceof Error) throw found;
        return found;
      },
      limits: {
        share: async (queue: string, call: ShareCall) => {
          shares.push(call);
          if (held.until) await held.until;
          const share = await engine.limits.share(queue, call);
          if (held.never) await latch().promise;
          if (held.fails) throw new Error('the answer is lost');
          return share;
        },
      },
      ring: async () => undefined,
    } as never,
    queue: 'q',
    limits: ['api'],
    leaseMs: LEASE_MS,
    running: () => 0,
    lost: () => undefined,
  });
  atEnd(() => starts.stop());
  const exchange = (seq: number, want = 2, worker = 'w', settled: readonly string[] = []) =>
    starts.exchange({ worker, seq, want, settled } as unknown as ExchangeCall);
  const renewals = () => shares.filter(({ want, kept }) => want === 0 && kept === null).length;
  const running = async () => (await engine.limits.shared(''))[0]!.running;
  return { starts, exchange, exchanges, wanted, renewals, running, held };
}

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

it('keeps the places of an exchange while its answer has not come', async () => {
  const { exchange, exchanges, renewals, running } = await worker();
  const answered = exchange(1);
  await vi.advanceTimersByTimeAsync(2 * LEASE_MS);
  expect(renewals()).toBeGreaterThan(2);
  expect(await running()).toBe(2);
  exchanges[0]!.open(EXCHANGED);
  expect(await answered).toMatchObject({ kind: 'exchanged' });
  expect(await running()).toBe(0);
});

it('keeps the places of an exchange that failed until its repetition is answered', async () => {
  const { exchange, exchanges, running } = await worker();
  const failed = exchange(1).catch((error: Error) => error.message);
  await vi.advanceTimersByTimeAsync(0);
  exchanges[0]!.open(new Error('no answer'));
  expect(await failed).toBe('no answer');
  await vi.advanceTimersByTimeAsync(2 * LEASE_MS);
  expect(await running()).toBe(2);
});

it('reports no places while it does not know how many were granted', async () => {
  const { exchange, exchanges, renewals, running, held } = await worker();
  const first = exchange(1);
  await vi.advanceTimersByTimeAsync(0);
  exchanges[0]!.open({ ...EXCHANGED, supply: 'more' });
  await first;
  held.fails = true;
  void exchange(2);
  await vi.advanceTimersByTimeAsync(0.9 * LEASE_MS);
  expect(renewals()).toBe(0);
  expect(await running()).toBe(2);
});

it('settles without claiming while the limits cannot be asked, and gives back starts whose grant was lost', async () => {
  const { exchange, exchanges, wanted, running, held } = await worker();
  held.fails = true;
  const first = exchange(1);
  await vi.advanceTimersByTimeAsync(0);
  expect(wanted).toEqual([-1]);
  exchanges[0]!.open(EXCHANGED);
  expect(await first).toMatchObject({ supply: { limitedForMs: expect.any(Number) } });
  expect(await running()).toBe(0);
});

it('settles after a second while the limits do not answer, and gives back starts that they grant later', async () => {
  const { exchange, exchanges, wanted, running, held } = await worker();
  const answers = latch();
  held.until = answers.promise;
  const first = exchange(1, 2, 'w', ['an outcome']);
  await vi.advanceTimersByTimeAsync(1_100);
  expect(wanted).toEqual([-1]);
  exchanges[0]!.open(EXCHANGED);
  expect(await first).toMatchObject({ supply: { limitedForMs: expect.any(Number) } });
  answers.open();
  for (let turn = 0; turn < 5; turn += 1) await vi.advanceTimersByTimeAsync(1);
  expect(await running()).toBe(0);
});

it('waits for a slow answer of the limits if it has no outcome to store', async () => {
  const { exchange, exchanges, wanted, held } = await worker();
  const answers = latch();
  held.until = answers.promise;
  const first = exchange(1);
  await vi.advanceTimersByTimeAsync(3_000);
  expect(wanted).toEqual([]);
  answers.open();
  await vi.waitFor(() => expect(wanted).toEqual([2]));
  exchanges[0]!.open(EXCHANGED);
  expect(await first).toMatchObject({ kind: 'exchanged' });
});

it('gives the places back if Redis does not know the worker any more', async () => {
  const { exchange, exchanges, running } = await worker();
  const first = exchange(1);
  await vi.advanceTimersByTimeAsync(0);
  exchanges[0]!.open({ kind: 'unknown-worker' } as ExchangeAnswer);
  expect(await first).toMatchObject({ kind: 'unknown-worker' });
  await vi.advanceTimersByTimeAsync(0);
  expect(await running()).toBe(0);
});

it('gives the places of its old name back when it takes a new one', async () => {
  const { exchange, exchanges, running } = await worker();
  const first = exchange(1);
  await vi.advanceTimersByTimeAsync(0);
  const job = { id: 'a', body: '', failed: 0, stalls: 0 };
  exchanges[0]!.open({ ...EXCHANGED, claimed: [job, { ...job, id: 'b' }], supply: 'more' });
  await first;
  expect(await running()).toBe(2);
  void exchange(1, 0, 'new');
  await vi.advanceTimersByTimeAsync(0);
  expect(await running()).toBe(0);
});

it('does not wait for the limits if it wants no jobs', async () => {
  const { exchange, exchanges, held } = await worker();
  const first = exchange(1);
  await vi.advanceTimersByTimeAsync(0);
  exchanges[0]!.open({ ...EXCHANGED, supply: 'more' });
  await first;
  held.never = true;
  const second = exchange(2, 0);
  await vi.advanceTimersByTimeAsync(0);
  exchanges[1]!.open(EXCHANGED);
  expect(await second).toMatchObject({ kind: 'exchanged' });
});

it('gives the places back if the queue cannot be reached, unless an earlier try may have claimed jobs', async () => {
  const { exchange, exchanges, wanted, running } = await worker();
  const fail = async (at: number, applied: 'no' | 'unknown') => {
    const failed = exchange(1).catch(() => undefined);
    await vi.advanceTimersByTimeAsync(0);
    exchanges[at]!.open(new RedisUnavailableError('exchange', applied, 'away'));
    await failed;
  };
  await fail(0, 'unknown');
  await fail(1, 'no');
  expect(await running()).toBe(2);
  const again = exchange(1);
  await vi.advanceTimersByTimeAsync(0);
  exchanges[2]!.open(EXCHANGED);
  await again;
  const refused = exchange(2).catch(() => undefined);
  await vi.advanceTimersByTimeAsync(0);
  expect(await running()).toBe(2);
  exchanges[3]!.open(new RedisUnavailableError('exchange', 'no', 'away'));
  await refused;
  expect(await running()).toBe(0);
  const last = exchange(2);
  await vi.advanceTimersByTimeAsync(0);
  exchanges[4]!.open(EXCHANGED);
  expect(await last).toMatchObject({ supply: { limitedForMs: 1 } });
  expect(wanted).toEqual([2, 2, 2, 2, -1]);
});

it('renews nothing after its stop, even if a renewal fails then', async () => {
  const { starts, exchange, renewals, held } = await worker();
  void exchange(1);
  await vi.advanceTimersByTimeAsync(0);
  held.fails = true;
  const before = renewals();
  // The renewal is sent, and the stop comes before its answer.
  vi.advanceTimersByTime(LEASE_MS / 4);
  starts.stop();
  await vi.advanceTimersByTimeAsync(2 * LEASE_MS);
  expect(renewals()).toBe(before + 1);
});

it('reports that jobs of groups are held back only if one waits', async () => {
  const engine = new MemoryEngine({ limitsOf: () => LIMITS });
  atEnd(() => engine.close());
  await engine.limits.set('', 's:api', 'code', { concurrency: 1 });
  await engine.limits.set('q', 'g', 'code', { concurrency: 1 });
  const startsOf = (queue: string) => {
    const parts = { engine, queue, limits: ['api'], leaseMs: 60_000, running: () => 0 };
    const starts = new SharedStarts({ ...parts, lost: () => undefined });
    atEnd(() => starts.stop());
    return (seq: number) =>
      starts.exchange({ worker: queue, seq, leaseMs: 60_000, want: 1, settled: [], maySuspect: false });
  };
  const add = (queue: string, group?: string) => {
    const job = { id: `${queue}1`, name: 'job', body: `job\n0\n${group ? '{"group":"a"}' : ''}\n1`, group };
    return engine.enqueue(queue, { lane: queue, seq: 1, rememberMs: 1, jobs: [job] } as never);
  };
  await add('other');
  expect(await startsOf('other')(1)).toMatchObject({ claimed: [{ id: 'other1' }] });
  const exchange = startsOf('q');
  expect(await exchange(1)).toMatchObject({ claimed: [], isHeldBack: false });
  await add('q', 'a');
  await vi.advanceTimersByTimeAsync(1_000);
  expect(await exchange(2)).toMatchObject({ claimed: [], isHeldBack: true });
});
