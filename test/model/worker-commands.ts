import * as fc from 'fast-check';
import type { ExchangeCall, QueueEngine } from '#lib/contract/engine.js';
import type { SettledRun } from '#lib/job/outcome.js';
import { completed, dead, FAILURE, kept, released, retried, snoozed } from '../scripts/support.js';
import { command, fate, id, IDS, name, NEVER_ADDED, oneIn, speaker } from './command.js';
import { QUEUE } from './rig.js';
import { withoutClock, type Scene } from './scene.js';

const OUTCOMES: readonly ((of: string) => SettledRun)[] = [
  completed,
  completed,
  (of) => kept(of, 60_000, '{"ok":true}'),
  (of) => kept(of, 2_000),
  (of) => retried(of),
  (of) => retried(of, { delayMs: 5_000 }),
  (of) => retried(of, { priority: 2, failure: { ...FAILURE, message: 'é'.repeat(600) } }),
  (of) => retried(of, { delayMs: 2_500.5, priority: 2 }),
  (of) => snoozed(of, 30_000),
  (of) => dead(of),
  (of) => ({
    ...dead(of, false),
    outcome: { kind: 'dead', reason: 'expired', failure: FAILURE, counted: false },
  }),
  (of) => released(of),
  (of) => released(of, true),
];

/** As a worker does that stops. */
export const GIVEN_BACK: typeof OUTCOMES = [(of) => released(of), (of) => released(of, true)];

/** Mostly a worker that holds jobs, if there is one. */
const holder = fc.record({ nth: speaker, holds: fc.constantFrom(true, true, true, false) });

function workerOf(scene: Scene, { nth, holds }: { nth: number; holds: boolean }) {
  const busy = scene.workers.filter(({ name: its }) => scene.held(its).length > 0);
  return holds && busy.length > 0 ? busy[nth % busy.length]! : scene.workers[nth]!;
}

/** Which job: one of the worker's own by number, or any id, also of other workers or of none. */
const whose = { own: fc.constantFrom(true, true, true, false), nth: fc.nat({ max: 9 }) };
const settlement = (outcomes: number) =>
  fc.record({
    ...whose,
    outcome: fc.nat({ max: outcomes - 1 }),
    name,
    attempt: fc.constantFrom(1, 2),
    durationUs: fc.constantFrom(0, 12_345),
  });

function idOf(scene: Scene, worker: string, { own, nth }: { own: boolean; nth: number }): string {
  const held = scene.held(worker);
  if (own && held.length > 0) return held[nth % held.length]!;
  return [...IDS, NEVER_ADDED][nth]!;
}

export const exchanged = (
  called: string,
  [wantMin, wantMax]: readonly [number, number],
  runsMax: number,
  outcomes = OUTCOMES,
) =>
  command(
    called,
    fc.record({
      worker: runsMax > 0 ? holder : speaker.map((nth) => ({ nth, holds: false })),
      want: fc.integer({ min: wantMin, max: wantMax }),
      maxBytes: fc.constantFrom(undefined, undefined, undefined, 60),
      maySuspect: fc.boolean(),
      perTurn: fc.constantFrom(undefined, undefined, 2),
      settled: fc.array(settlement(outcomes.length), {
        minLength: Math.min(1, runsMax),
        maxLength: runsMax,
        size: 'max',
      }),
      older: oneIn(20),
      pipelined: oneIn(4),
      fate,
    }),
    async (scene, { older: isOld, ...drawn }) => {
      scene.wasLimited ||= scene.memory.isLimited;
      const older = isOld && !scene.wasLimited;
      const worker = workerOf(scene, drawn.worker);
      // A worker does not pipeline its first exchange: the answer would be `unknown-worker`.
      const pipelined = drawn.pipelined && (worker.seq > 0 || isOld);
      const last = pipelined ? worker.pipelinedSeq : worker.seq;
      const seq = older ? Math.max(1, last - 1) : last + 1;
      const call: ExchangeCall = {
        worker: worker.name,
        seq,
        pipelined,
        leaseMs: worker.leaseMs,
        want: drawn.want,
        maySuspect: drawn.maySuspect,
        perTurn: drawn.perTurn,
        settled: drawn.settled.map(({ own, nth, outcome, ...more }) => ({
          ...outcomes[outcome]!(idOf(scene, worker.name, { own, nth })),
          ...more,
        })),
        ...(drawn.maxBytes && { maxBytes: drawn.maxBytes }),
      };
      // The answer to a repetition does not say whether the first one was cut.
      const idempotent = call.maxBytes === undefined;
      const exchange = (engine: QueueEngine) => engine.exchange(QUEUE, call).then(withoutClock);
      if (!older) scene.past.push({ call: exchange, idempotent, isExchange: true });
      // With limits these are two calls, and only the first would be lost.
      const lost = scene.memory.isLimited ? 'answered' : drawn.fate;
      const answer = await scene.both(exchange, { fate: lost, idempotent });
      if (answer.kind === 'exchanged') worker[pipelined ? 'pipelinedSeq' : 'seq'] = Math.max(last, seq);
      else if (answer.kind === 'unknown-worker') scene.rename(worker);
    },
  );

export const claimAtBell = command(
  'claim at the bell',
  fc.record({ worker: speaker, want: fc.nat({ max: 5 }), older: oneIn(10) }),
  async (scene, { worker: nth, want, older }) => {
    const { name: worker, seq: last, leaseMs } = scene.workers[nth]!;
    const seq = older ? Math.max(1, last) : last + 1;
    const answer = await scene.claimNow({ worker, seq, leaseMs, want, maySuspect: true, settled: [] });
    if (answer && answer.claimed.length > 0) scene.workers[nth]!.seq = seq;
  },
);

export const beat = command('beat', fc.record({ worker: speaker, fate }), async (scene, drawn) => {
  const worker = scene.workers[drawn.worker]!;
  const answer = await scene.both((engine) => engine.beat(QUEUE, worker.name, worker.leaseMs), {
    fate: drawn.fate,
  });
  if (answer.kind === 'unknown-worker') scene.rename(worker);
});

export const release = command(
  'release',
  fc.record({
    worker: holder,
    of: fc.array(fc.record(whose), { maxLength: 4 }),
    leave: fc.boolean(),
    fate,
  }),
  async (scene, { leave, ...drawn }) => {
    const { name: worker } = workerOf(scene, drawn.worker);
    const ids = drawn.of.map((one) => idOf(scene, worker, one));
    await scene.both((engine) => engine.release(QUEUE, { worker, ids, leave }), { fate: drawn.fate });
  },
);

export const note = command(
  'note',
  fc.record({
    worker: holder,
    of: fc.record(whose),
    name,
    progress: fc.constantFrom('', '{"n":1}'),
    log: fc.constantFrom('', 'a line', 'two\nlines'),
    data: fc.constantFrom(undefined, undefined, '{"n":2}'),
    fate,
  }),
  async (scene, { of, progress, log, data, ...drawn }) => {
    const { name: worker } = workerOf(scene, drawn.worker);
    const what = data === undefined ? { progress, log } : { data };
    const call = { worker, id: idOf(scene, worker, of), name: drawn.name, attempt: 2, ...what };
    await scene.both((engine) => engine.note(QUEUE, call), { fate: drawn.fate });
  },
);

export const adopt = command(
  'adopt',
  fc.record({ worker: speaker, known: fc.uniqueArray(id, { maxLength: 4 }) }),
  (scene, drawn) =>
    scene.both(async (engine) => {
      const answer = await engine.adopt(QUEUE, scene.workers[drawn.worker]!.name, drawn.known);
      return { ...answer, unknown: answer.unknown.toSorted() };
    }),
);
