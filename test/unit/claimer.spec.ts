import { describe, expect, it, vi } from 'vitest';
import type { ClaimedJob, ExchangeAnswer, ExchangeCall } from '#lib/contract/engine.js';
import { LinkedSet } from '#lib/contract/linked-set.js';
import { Log } from '#lib/contract/log.js';
import { RedisUnavailableError } from '#lib/errors.js';
import type { Outcome, SettledRun } from '#lib/job/outcome.js';
import { encodeBody } from '#lib/job/job-record.js';
import { RULES } from '#lib/job/rules.js';
import { Claimer, type ClaimerParts } from '#lib/worker/claimer.js';
import { Prefetch } from '#lib/worker/prefetch.js';
import { Slots } from '#lib/worker/slots.js';
import { atEnd } from '../support/cleanup.js';
import { timersLeft } from '../support/timers.js';
import { endOfTurn, until } from '../support/wait.js';

interface Given extends Partial<ClaimerParts> {
  want?: (asked: number) => number;
  isWorthPipelining?: (want: number) => boolean;
  starts?: (job: ClaimedJob) => void;
}

/** A claimer whose calls the test answers. */
function claimerOf(given: Given = {}) {
  const { want = () => 1, isWorthPipelining = () => false, starts = () => {}, ...parts } = given;
  const calls: ExchangeCall[] = [];
  const answers: ((answer: ExchangeAnswer) => void)[] = [];
  const failures: ((error: Error) => void)[] = [];
  const counted: unknown[] = [];
  const exchange = (call: ExchangeCall) => {
    calls.push(call);
    return new Promise<ExchangeAnswer>((resolve, reject) => {
      answers.push(resolve);
      failures.push(reject);
    });
  };
  const warned = vi.spyOn(Log.prototype, 'warn').mockImplementation(() => {});
  const worth = vi.spyOn(Prefetch.prototype, 'isWorthPipelining').mockImplementation(isWorthPipelining);
  const claimer = new Claimer({
    exchange,
    queue: 'work',
    leaseMs: 1_000,
    slots: new Slots(1_000),
    runner: {
      runs: new LinkedSet(),
      start: starts,
      goesBack: () => {},
      answered: (...how: unknown[]) => counted.push(how),
      countedAt: 0,
    } as never,
    leases: { holds: () => {}, renamed: () => {} } as never,
    answered: () => {},
    looked: () => {},
    rests: () => {},
    passOn: () => {},
    ...parts,
  });
  claimer.open = true;
  vi.spyOn(claimer, 'want').mockImplementation((asked = 0) => want(asked));
  atEnd(() => {
    claimer.stop();
    warned.mockRestore();
    worth.mockRestore();
  });
  const ends = (run: SettledRun) => claimer.ended({ stalls: 0, ...run });
  /** How many jobs were lost with the lease. */
  const lost = () => warned.mock.calls.map(([text]) => Number(/held (\d+) job/.exec(text)?.[1]));
  return { claimer, ends, calls, answers, failures, lost, counted };
}

const run = (id: string, outcome: Outcome = { kind: 'completed' }): SettledRun => ({
  id,
  name: 'job',
  attempt: 1,
  durationUs: 1,
  stalls: 0,
  outcome,
});

const job = (id: string): ClaimedJob => ({ id, body: 'work\n', failed: 0, stalls: 0 });

const NOTHING = {
  kind: 'exchanged',
  supply: 'empty',
  dueInMs: null,
  leaseInMs: null,
  scheduleInMs: null,
  isCut: false,
  held: 0,
  lost: [],
  claimed: [],
  claimedAt: 0,
} as const satisfies ExchangeAnswer;

it('sends no outcomes of its old name under its new one', async () => {
  const { ends, calls, answers, lost } = claimerOf();
  ends(run('on its way'));
  await until(() => calls.length === 1);
  ends(run('next'));
  answers[0]!({ kind: 'unknown-worker' });
  await until(() => calls.length === 2);
  expect(calls[1]!.worker).not.toBe(calls[0]!.worker);
  expect(calls[1]!.settled).toEqual([]);
  expect(lost()).toEqual([2]);
});

it.each([
  ['completed', { kind: 'completed' }, 500],
  ['completed and kept', { kind: 'completed', keep: { forMs: 1, result: undefined } }, 250],
] as const)('settles a limited number of %s runs per call, in their order', async (_, outcome, most) => {
  const { ends, calls, answers } = claimerOf();
  const ids = Array.from({ length: most + 7 }, (_one, i) => `${i}`);
  for (const id of ids) ends(run(id, outcome));
  await until(() => calls.length === 1);
  answers[0]!(NOTHING);
  await until(() => calls.length === 2);
  expect(calls.map(({ settled }) => settled.length)).toEqual([most, 7]);
  expect(calls.flatMap(({ settled }) => settled.map(({ id }) => id))).toEqual(ids);
});

it('sends the next exchange before the claimed jobs start', async () => {
  const order: string[] = [];
  const { ends, calls, answers } = claimerOf({
    answered: () => order.push('takes'),
    starts: () => order.push(`starts after ${calls.length} calls`),
  });
  ends(run('first'));
  await until(() => calls.length === 1);
  ends(run('second'));
  answers[0]!({ ...NOTHING, claimed: [job('third')] });
  await until(() => order.length === 2);
  expect(order).toEqual(['takes', 'starts after 2 calls']);
});

it('sends it before they start also if nothing is settled but more jobs are wanted', async () => {
  let callsAtStart = 0;
  const { claimer, calls, answers } = claimerOf({ starts: () => (callsAtStart = calls.length) });
  claimer.exchangeSoon();
  await until(() => calls.length === 1);
  answers[0]!({ ...NOTHING, supply: 'more', claimed: [job('first')] });
  await until(() => callsAtStart > 0);
  expect(callsAtStart).toBe(2);
});

it('keeps only the outcome of a settled run', async () => {
  const { ends, calls } = claimerOf();
  const whole = { ...run('first'), data: { note: 'large' } };
  ends(whole);
  await until(() => calls.length === 1);
  expect(calls[0]!.settled).toEqual([run('first')]);
});

describe('jobs that go back', () => {
  const RELEASED = { kind: 'released' } as const;
  const idsOf = ({ settled }: ExchangeCall) => settled.map(({ id }) => id);

  it('are sent with the last ones first, because each call puts its jobs before all waiting ones', async () => {
    const { ends, calls, answers } = claimerOf();
    const ids = Array.from({ length: 257 }, (_one, i) => `${i}`);
    ends(run('done'));
    for (const id of ids) ends(run(id, RELEASED));
    await until(() => calls.length === 1);
    answers[0]!(NOTHING);
    await until(() => calls.length === 2);
    expect(calls.map(idsOf)).toEqual([['done', ...ids.slice(8)], ids.slice(0, 8)]);
    // A job that the first call claims would overtake those of the second.
    expect(calls.map(({ want }) => want)).toEqual([0, 1]);
  });

  it('come after those that have run', async () => {
    const { ends, calls } = claimerOf();
    for (const id of ['3', '4']) ends(run(id, RELEASED));
    for (const id of ['1', '2']) ends(run(id, { ...RELEASED, started: true }));
    await until(() => calls.length === 1);
    expect(idsOf(calls[0]!)).toEqual(['1', '2', '3', '4']);
  });

  it('come before those of a call that is in flight when the worker stops', async () => {
    let most = 5;
    const { claimer, ends, calls, answers } = claimerOf({ slots: new Slots(1), want: () => most });
    claimer.exchangeSoon();
    await until(() => calls.length === 1);
    answers[0]!({ ...NOTHING, supply: 'more', claimed: ['a', 'b', 'c'].map(job) });
    await until(() => calls.length === 2);
    most = 0;
    claimer.end();
    expect(claimer.held).toBe(2);
    ends(run('a'));
    answers[1]!({ ...NOTHING, supply: 'more', claimed: ['d', 'e'].map(job) });
    await until(() => calls.length === 3);
    expect(idsOf(calls[2]!)).toEqual(['a', 'b', 'c', 'd', 'e']);
  });
});

describe('if jobs must start at once, those that have waited for a blocked event loop', () => {
  async function blocked(group?: string) {
    const started: string[] = [];
    const starts = ({ id }: ClaimedJob) => {
      started.push(id);
      // As long as a permit to start lasts, and longer.
      for (const until = performance.now() + RULES.startMs + 20; performance.now() < until;);
    };
    const { calls, answers, claimer, counted } = claimerOf({ starts, want: () => 0 });
    const body = encodeBody('work', 0, { group }, '');
    const answer = (at: number, ...ids: string[]) =>
      answers[at]!({
        ...NOTHING,
        startsAtOnce: true,
        claimedAt: at,
        claimed: ids.map((id) => ({ ...job(id), body })),
      });
    claimer.exchangeAnyway();
    await until(() => calls.length === 1);
    answer(0, 'a', 'b', 'c');
    await until(() => calls.length === 2);
    expect(started).toEqual(['a']);
    answer(1);
    await until(() => calls.length === 3);
    return { calls, answer, started, counted };
  }

  it('go back once if they have a group, which may be paused meanwhile', async () => {
    const { calls, answer, started } = await blocked('tenant');
    const settled = calls[2]!.settled.map(({ id, outcome }) => [id, outcome.kind]);
    expect(settled).toEqual([
      ['b', 'released'],
      ['c', 'released'],
    ]);
    answer(2, 'b');
    await until(() => started.length === 2);
    expect(started).toEqual(['a', 'b']);
  });

  it('start if they have none', async () => {
    const { calls, answer, started, counted } = await blocked();
    // They were counted before the time of the second answer.
    expect(counted).toEqual([
      [0, false],
      [1, true],
    ]);
    answer(2);
    await until(() => started.length === 3);
    expect([started, calls[2]!.settled]).toEqual([['a', 'b', 'c'], []]);
  });
});

describe('fewer slots', () => {
  it('give back at once jobs that have not started', async () => {
    const started: string[] = [];
    const slots = new Slots(3);
    const { claimer, calls, answers } = claimerOf({ slots, starts: ({ id }) => started.push(id) });
    claimer.exchangeSoon();
    await until(() => calls.length === 1);
    // From here on no timer runs, such as the one that gives back jobs which wait long for a slot.
    vi.useFakeTimers({ toFake: ['setTimeout'] });
    atEnd(() => void vi.useRealTimers());
    answers[0]!({ ...NOTHING, supply: 'more', claimed: ['a', 'b', 'c', 'd', 'e'].map(job) });
    await endOfTurn();
    expect([started, claimer.held]).toEqual([['a', 'b', 'c'], 2]);
    slots.resize(1);
    expect(claimer.held).toBe(0);
    for (let at = 1; at < calls.length; at++) answers[at]!(NOTHING);
    await endOfTurn();
    const settled = calls.flatMap((call) => call.settled.map(({ id, outcome }) => [id, outcome.kind]));
    expect(settled).toEqual([
      ['d', 'released'],
      ['e', 'released'],
    ]);
    expect(started).toEqual(['a', 'b', 'c']);
  });
});

describe('two exchanges in flight', () => {
  /** Its first exchange is answered. Each exchange claims up to 3. */
  async function known(slots: number, more: Given = {}) {
    const made = claimerOf({
      want: (asked) => Math.min(3, slots - asked),
      isWorthPipelining: (want) => want > 1,
      ...more,
    });
    made.claimer.exchangeSoon();
    await until(() => made.calls.length === 1);
    made.answers[0]!(NOTHING);
    await until(() => !made.claimer.busy);
    return made;
  }
  const asked = (calls: readonly ExchangeCall[]) =>
    calls.slice(1).map(({ seq, pipelined, want }) => [pipelined ? 'pipelined' : 'first', seq, want]);

  it('are sent if the second one claims enough, and never three', async () => {
    const { claimer, ends, calls, answers } = await known(100);
    claimer.exchangeSoon();
    await until(() => calls.length === 3);
    ends(run('waits'));
    await endOfTurn();
    expect(asked(calls)).toEqual([
      ['first', 2, 3],
      ['pipelined', 1, 3],
    ]);
    answers[2]!(NOTHING);
    await until(() => calls.length === 4);
    expect(asked(calls)[2]).toEqual(['pipelined', 2, 3]);
    expect(calls[3]!.settled).toMatchObject([{ id: 'waits' }]);
    answers[1]!(NOTHING);
    await endOfTurn();
    claimer.exchangeSoon();
    await until(() => calls.length === 5);
    expect(asked(calls)[3]).toEqual(['first', 3, 3]);
  });

  it('are sent once there is room, which jobs that end before the answer may make', async () => {
    let slots = 4;
    const { claimer, ends, calls } = await known(0, { want: (all) => Math.min(3, slots - all) });
    claimer.exchangeSoon();
    await until(() => calls.length === 2);
    await endOfTurn();
    expect(calls).toHaveLength(2);
    slots = 6;
    ends(run('ended'));
    await until(() => calls.length === 3);
    expect(asked(calls)).toEqual([
      ['first', 2, 3],
      ['pipelined', 1, 3],
    ]);
    expect(calls[2]!.settled).toMatchObject([{ id: 'ended' }]);
  });

  it('are only one if the worker is not known yet', async () => {
    const { claimer, calls } = claimerOf({ want: () => 3, isWorthPipelining: () => true });
    claimer.exchangeSoon();
    await until(() => calls.length === 1);
    claimer.exchangeSoon();
    await endOfTurn();
    expect(calls).toHaveLength(1);
  });

  it('claim at most one suspect', async () => {
    const { claimer, calls } = await known(100);
    claimer.exchangeSoon();
    await until(() => calls.length === 3);
    expect(calls.slice(1).map(({ maySuspect }) => maySuspect)).toEqual([true, false]);
  });

  it('count as unconfirmed, both, until each is answered', async () => {
    const { claimer, ends, calls, answers } = await known(100);
    ends(run('a'));
    await until(() => calls.length === 3);
    ends(run('b'));
    answers[2]!(NOTHING);
    await until(() => calls.length === 4);
    expect(claimer.known()).toEqual(['a', 'b']);
    expect(claimer.unconfirmed()).toBe(2);
    answers[3]!(NOTHING);
    await endOfTurn();
    expect(claimer.known()).toEqual(['a']);
  });

  it('are lost together with the lease, once; jobs claimed by the late one under the old name are ignored', async () => {
    const taken: string[] = [];
    const { claimer, ends, calls, answers, lost } = await known(100, {
      starts: ({ id }) => taken.push(id),
    });
    ends(run('a'));
    await until(() => calls.length === 3);
    ends(run('b'));
    answers[1]!({ kind: 'unknown-worker' });
    await endOfTurn();
    expect(lost()).toEqual([2]);
    const { worker } = claimer;
    expect(worker).not.toBe(calls[1]!.worker);
    answers[2]!({ ...NOTHING, claimed: [job('c')] });
    await endOfTurn();
    expect([taken, claimer.worker]).toEqual([[], worker]);
    expect(asked(calls)[2]).toEqual(['first', 1, 3]);
  });

  it('are each repeated with their own number, and held jobs are not compared meanwhile', async () => {
    const { claimer, calls, failures, answers } = await known(100);
    claimer.exchangeSoon();
    await until(() => calls.length === 3);
    expect(claimer.isRepeating).toBe(false);
    failures[2]!(new RedisUnavailableError('exchange', 'unknown', 'gone'));
    await until(() => claimer.isRepeating);
    await until(() => calls.length === 4);
    expect(calls[3]).toEqual(calls[2]);
    answers[3]!(NOTHING);
    await endOfTurn();
    expect([claimer.isRepeating, claimer.answers]).toEqual([false, 2]);
  });

  it('have a later time than that at which limits counted their jobs', async () => {
    const { claimer, calls, failures, answers, counted } = claimerOf({ want: () => 1 });
    claimer.exchangeSoon();
    await until(() => calls.length === 1);
    failures[0]!(new RedisUnavailableError('exchange', 'unknown', 'gone'));
    await until(() => calls.length === 2);
    answers[1]!({ ...NOTHING, startsAtOnce: true, claimedAt: 7 });
    await endOfTurn();
    expect(counted).toEqual([[7, true]]);
  });
});

it('stop ends the wait for slow starts, although claimed jobs are left', async () => {
  const { claimer, answers } = claimerOf({ slots: new Slots(1) });
  claimer.exchangeSoon();
  await until(() => answers.length === 1);
  answers[0]!({ ...NOTHING, claimed: [job('runs'), job('waits')] });
  await until(() => claimer.known().length === 1);
  claimer.stop();
  expect(timersLeft()).toEqual([]);
});
