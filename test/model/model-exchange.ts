import type { ClaimAnswer, ClaimedJob, ExchangeAnswer, ExchangeCall } from '#lib/contract/engine.js';
import type { SettledRun } from '#lib/job/outcome.js';
import { CORRUPT } from './model-verbs.js';
import { claimOf, sorted, type QueueModel, type Saying } from './queue-model.js';

/** What an exchange should do and answer; with the time by the clock of the store, which goes along. */
export function exchange(model: QueueModel, call: ExchangeCall): ExchangeAnswer {
  const now = { now: model.now };
  return { ...exchanged(model, call), ...now };
}

function exchanged(model: QueueModel, call: ExchangeCall): ExchangeAnswer {
  const record = model.records.get(call.worker);
  const before = call.beside ? record?.beside : record;
  const last = before?.seq;
  if (last === undefined && call.seq > 1) return { kind: 'unknown-worker' };
  if (call.beside && record?.seq === undefined) return { kind: 'unknown-worker' };
  if (last !== undefined && call.seq < last) return { kind: 'stale' };
  const held = model.held(call.worker);
  if (last === call.seq)
    return answer(
      model,
      call,
      before!.lost!,
      before!.gave!.filter((id) => held.has(id)),
      before!.gave!.length,
    );

  const heldBefore = held.size;
  const { lost, says, soonest } = settle(model, call);
  model.promoteDue(250);
  const ids = claim(model, call, says);
  if (model.pausedAt === null && soonest < Infinity && model.dueInMs()! >= soonest - model.now)
    model.ringSooner();
  if (ids.length > 0 || heldBefore > 0) {
    if (held.size > 0) model.leases.set(call.worker, model.now + call.leaseMs);
    else model.leases.delete(call.worker);
  }
  const done = { seq: call.seq, gave: ids, lost };
  model.records.set(call.worker, {
    ...record,
    ...(call.beside ? { beside: done } : done),
    leaseMs: call.leaseMs,
    until: model.now + model.limits.recordMs,
  });
  model.say(says);
  return answer(model, call, lost, ids, ids.length);
}

/** What a claim at the bell should do and answer: an exchange of nothing but new jobs, or nothing at all. */
export function claimed(
  model: QueueModel,
  call: ExchangeCall,
): (ClaimAnswer & { readonly now: number }) | null {
  const { worker, want, leaseMs } = call;
  const { now } = model;
  const record = model.records.get(worker);
  if (record?.seq === undefined || record.seq >= call.seq) return null;
  if (want < 1 || model.pausedAt !== null || model.suspects.length > 0) return null;
  const line = [...model.wait, ...sorted(model.prioritized).map(([id]) => id)].slice(0, want);
  if (line.some((id) => !model.jobs.has(id))) return null;
  if (line.length === 0) {
    record.until = now + model.limits.recordMs;
  } else {
    const says: Saying[] = [];
    claim(model, call, says);
    model.leases.set(worker, now + leaseMs);
    model.records.set(worker, { ...record, seq: call.seq, gave: line, lost: [], leaseMs });
    model.say(says);
  }
  const held = line.length > 0 ? null : model.held(worker).size;
  return { kind: 'claimed', now, claimed: claimedOf(model, line), isCut: false, held };
}

function claimedOf(model: QueueModel, ids: readonly string[]): ClaimedJob[] {
  return ids.filter((id) => model.jobs.has(id)).map((id) => claimOf(model, id));
}

function answer(
  model: QueueModel,
  call: ExchangeCall,
  lost: readonly string[],
  ids: readonly string[],
  count: number,
): ExchangeAnswer {
  const others = sorted(model.leases).filter(([worker]) => worker !== call.worker);
  return {
    kind: 'exchanged',
    lost,
    claimed: claimedOf(model, ids),
    isCut: false,
    supply: model.pausedAt !== null ? 'paused' : count < Math.min(call.want, 1_000) ? 'empty' : 'more',
    ...(model.pausedAt !== null && { pauseMark: String(model.pausedAt) }),
    dueInMs: model.dueInMs(),
    held: model.held(call.worker).size,
    leaseInMs: others[0] ? Math.max(0, Math.ceil(others[0][1] - model.now)) : null,
    scheduleInMs: null,
  };
}

const is = (kind: SettledRun['outcome']['kind'], keep?: boolean) => (run: SettledRun) =>
  run.outcome.kind === kind && (run.outcome.kind !== 'completed' || Boolean(run.outcome.keep) === keep);

function settle(
  model: QueueModel,
  { worker, settled }: ExchangeCall,
): { lost: string[]; says: Saying[]; soonest: number } {
  const held = model.held(worker);
  const lost: string[] = [];
  const accept = (run: SettledRun) => {
    if (held.delete(run.id)) return true;
    lost.push(run.id);
    return false;
  };
  const plain = settled.filter(is('completed', false));
  // One answer for all that are held: what is said twice of a job counts once, and none of it was in vain.
  if (plain.every(({ id }) => held.has(id))) {
    for (const { id, name } of plain) {
      if (!held.delete(id)) continue;
      completedOne(model, name);
      model.forget(id);
    }
  } else {
    const accepted = plain.filter(accept);
    for (const { id, name } of accepted) {
      completedOne(model, name);
      model.forget(id);
    }
  }
  const ended: string[] = [];
  /** What was cancelled meanwhile goes no further. */
  const goesOn = (run: SettledRun) => {
    if (!accept(run)) return false;
    if (model.toCancel.has(run.id)) ended.push(run.id);
    return !model.toCancel.has(run.id);
  };
  for (const run of settled.filter(is('completed', true))) if (accept(run)) keep(model, run);
  if (model.completed.size > 0) model.trimCompleted();
  let soonest = Infinity;
  for (const run of settled.filter(is('retried')))
    if (goesOn(run)) soonest = Math.min(soonest, retry(model, run));
  const died = settled.filter(is('dead')).filter(goesOn);
  for (const run of died) die(model, run);
  model.toHead(
    settled
      .filter(is('released'))
      .filter(goesOn)
      .map(({ id }) => id),
  );

  const vain = [...lost, ...ended];
  const says: Saying[] = settled.length > vain.length ? sayings(settled, new Set(vain)) : [];
  says.push(...model.withoutCancelled(ended).says);
  if (died.length > 0) says.push(...model.trimDead());
  return { lost, says, soonest };
}

function completedOne(model: QueueModel, name: string): void {
  model.tallyName('processed', name);
}

function keep(model: QueueModel, { id, name, attempt, durationUs, outcome }: SettledRun): void {
  const { forMs, result } = (outcome as { keep: { forMs: number; result: string | undefined } }).keep;
  model.completed.set(id, model.now + forMs);
  model.results.set(id, `${model.now}\n${JSON.stringify({ attempt, us: durationUs, result })}`);
  for (const map of [model.attempts, model.stalls, model.toCancel]) map.delete(id);
  completedOne(model, name);
}

/** Answers when it is due, where that is later. */
function retry(model: QueueModel, { id, name, outcome }: SettledRun): number {
  const { delayMs, failure, priority, counted } = outcome as Extract<typeof outcome, { kind: 'retried' }>;
  if (counted) count(model, id, name);
  else model.attempts.set(id, model.attempts.get(id) ?? 0);
  if (failure) model.failures.set(id, `${model.now}\n${JSON.stringify(failure)}`);
  if (delayMs > 0) {
    model.delay(id, model.now + delayMs);
    if (priority > 0) model.priorities.set(id, priority);
    return model.now + delayMs;
  }
  if (priority > 0) model.prioritized.set(id, model.nextRank(priority));
  else model.wait.push(id);
  return Infinity;
}

function die(model: QueueModel, { id, name, outcome }: SettledRun): void {
  const { failure, reason, counted } = outcome as Extract<typeof outcome, { kind: 'dead' }>;
  model.bury(id, JSON.stringify({ ...failure, reason }));
  if (counted) count(model, id, name);
  model.tallyName('dead', name);
}

function count(model: QueueModel, id: string, name: string): void {
  model.attempts.set(id, (model.attempts.get(id) ?? 0) + 1);
  model.tallyName('failed', name);
}

/** One event for each run, by outcome; those of a lost job have numbers only. */
function sayings(runs: readonly SettledRun[], lost: ReadonlySet<string>): Saying[] {
  const typeOf = ({ outcome }: SettledRun) =>
    outcome.kind === 'retried' ? (outcome.counted ? 'retrying' : 'delayed') : outcome.kind;
  return (['completed', 'retrying', 'delayed', 'dead', 'released'] as const).flatMap((type) =>
    runs
      .filter((run) => typeOf(run) === type)
      .map((run): Saying => {
        const reason = run.outcome.kind === 'dead' ? run.outcome.reason : '';
        const { id, name, attempt } = run;
        return { type, id, name, attempt, reason, skipped: lost.has(id) };
      }),
  );
}

function claim(model: QueueModel, { worker, want, maySuspect }: ExchangeCall, says: Saying[]): string[] {
  const suspects = maySuspect ? model.suspects.length : 0;
  const left = model.wait.length + model.prioritized.size + suspects;
  const ids: string[] = [];
  if (want > 0 && left > 0 && model.pausedAt === null) {
    if (maySuspect) ids.push(...model.suspects.splice(0, 1));
    ids.push(...model.wait.splice(0, want - ids.length));
    for (const [id] of sorted(model.prioritized).slice(0, want - ids.length)) {
      model.prioritized.delete(id);
      ids.push(id);
    }
  }
  if (left > ids.length && model.pausedAt === null) model.ring();
  const broken = ids.filter((id) => !model.jobs.has(id));
  for (const id of broken) {
    model.jobs.set(id, '');
    model.bury(id, CORRUPT);
    says.push({ type: 'dead', id, reason: 'corrupt' });
  }
  model.tallyName('dead', '', broken.length);
  const whole = ids.filter((id) => !broken.includes(id));
  for (const id of whole) {
    model.held(worker).add(id);
    says.push({ type: 'active', id, name: model.nameOf(id), attempt: (model.attempts.get(id) ?? 0) + 1 });
  }
  return whole;
}
