import type {
  CleanCall,
  DeadChoice,
  DeadMatch,
  KeptOut,
  RetryAnswer,
  RetryChoice,
  UpkeepVerbs,
} from '../contract/upkeep-verbs.js';
import type { QueueLimits } from '../contract/engine.js';
import { decodeBody, optionsLineOf, withLines } from '../job/job-record.js';
import { isFitting } from '../job/name-pattern.js';
import { sayAll } from './event-log.js';
import { freeAllKeys, freeKey, freeKeysOf, rivalOf, takeKey, uniqueOf } from './unique.js';
import type { Line } from './lines.js';
import type { MemoryJob } from './memory-job.js';
import type { MemoryQueue } from './memory-queue.js';
import type { Verbs } from './verbs.js';

/** Only this many jobs at the head of a line are cleaned: the oldest jobs are there. */
const HEAD = 200;

/** Dead letters, cleaning, retention. A verb that takes several scripts on Redis is one step here. */
export class MemoryUpkeep implements UpkeepVerbs {
  constructor(private readonly verbs: Verbs) {}

  retryDead(queue: string, which: RetryChoice): Promise<RetryAnswer> {
    return this.verbs.on('retryDead', queue, (q, limits) => {
      // A corrupt job cannot be retried.
      const data = 'data' in which ? which.data : undefined;
      const refused: KeptOut[] = [];
      const takers = new Map<string, MemoryJob>();
      const hasRival = (job: MemoryJob) => {
        const digest = uniqueOf(job);
        if (digest === undefined) return false;
        const rival = takers.get(digest) ?? rivalOf(q, job.id, digest);
        if (rival) refused.push({ id: job.id, holder: rival.id });
        else takers.set(digest, job);
        return rival !== undefined;
      };
      const canRun = ({ body }: MemoryJob) =>
        body !== '' && (data === undefined || optionsLineOf(body) !== null);
      const jobs = chosen(q, which, (job) => canRun(job) && !hasRival(job));
      for (const job of jobs) {
        const { priority = 0, group, deadline } = decodeBody(job.body)?.options ?? {};
        // Only this value changes, as in `retry-dead.lua`.
        const options =
          deadline === undefined
            ? undefined
            : optionsLineOf(job.body)!.replace(/"deadline":\d+/, '"deadline":null');
        if (options ?? data) job.body = withLines(job.body, options, data);
        q.leave(job);
        job.forgetTraces();
        job.started = true;
        q.lineUp(job, priority);
        if (group !== undefined) q.limits.flag('g');
      }
      for (const [digest, job] of takers) takeKey(q, job.id, { digest, on: 'again', forMs: 0 });
      if (jobs.length > 0) q.ring();
      q.say(sayAll('added', jobs), limits);
      return { retried: jobs.map(({ id }) => id), ...(refused.length > 0 && { refused }) };
    });
  }

  removeDead(queue: string, which: DeadChoice): Promise<{ removed: readonly string[] }> {
    return this.verbs.on('removeDead', queue, (q, limits) => takeAway(q, chosen(q, which), limits));
  }

  clean(queue: string, call: CleanCall): Promise<{ removed: readonly string[] }> {
    return this.verbs.on('clean', queue, (q, limits) =>
      takeAway(q, [...oldOnes(q, call)].slice(0, call.limit), limits),
    );
  }

  handles(queue: string, names: readonly string[]): Promise<void> {
    return this.verbs.on('handles', queue, ({ handled, now }) => {
      // As on Redis, nothing is stored until a process has asked.
      if (handled.size > 0) for (const name of names) handled.set(name, now);
    });
  }

  unhandledMs(queue: string, name: string): Promise<number> {
    return this.verbs.on('unhandledMs', queue, ({ handled, now }) => {
      const own = handled.get(name) ?? now;
      handled.set(name, own);
      let last = Math.max(own, handled.get('') ?? 0);
      for (const [known, at] of handled) if (isFitting(known, name)) last = Math.max(last, at);
      return Math.max(0, now - last);
    });
  }

  freeKeys(queue: string, digests: readonly string[]): Promise<number> {
    return this.verbs.on('freeKeys', queue, (q) =>
      digests.reduce((freed, digest) => freed + freeKey(q, digest), 0),
    );
  }

  claimUpkeep(queues: readonly string[], forMs: number): Promise<boolean> {
    const { store } = this.verbs;
    return this.verbs.run('claimUpkeep', () => store.claimUpkeep(queues, forMs));
  }

  overgrown(queues: readonly string[]): Promise<readonly string[]> {
    const { store } = this.verbs;
    return this.verbs.run('overgrown', () =>
      queues.filter((queue) => isOvergrown(store.at(queue), this.verbs.limitsOf(queue))),
    );
  }

  trim(queue: string): Promise<number> {
    return this.verbs.on('trim', queue, (q, limits) => {
      const completed = q.trimCompleted(limits) || q.trimCancelled();
      const dead = completed === 0 ? q.freeing(() => q.trimDead(limits)) : [];
      q.say(dead, limits);
      const { eventsAgeMs } = limits;
      const events = eventsAgeMs === null ? 0 : q.events.trim(q.now - eventsAgeMs);
      return completed + dead.length + events + freeAllKeys(q);
    });
  }
}

function isOvergrown({ completed, dead, events, keys, now }: MemoryQueue, limits: QueueLimits): boolean {
  const { completedMax, deadMax, deadMaxBytes, deadAgeMs, eventsAgeMs } = limits;
  return (
    keys.size > 0 ||
    completed.size > completedMax ||
    [...completed].some(({ keptUntil }) => keptUntil <= now) ||
    dead.size > Math.min(deadMax, Math.floor(deadMaxBytes / 1_048_576)) ||
    (dead.first?.score ?? Infinity) <= now - deadAgeMs ||
    (eventsAgeMs !== null && (events.oldestAt ?? Infinity) <= now - eventsAgeMs)
  );
}

/** The named dead jobs, or those that match, earliest death first. */
function chosen(queue: MemoryQueue, which: DeadChoice, fits = (_job: MemoryJob) => true): MemoryJob[] {
  if ('ids' in which) {
    const { until = Infinity } = which;
    const jobs = Array.from(new Set(which.ids), (id) => queue.jobs.get(id));
    return jobs.filter((job) => job?.place === 'dead' && job.score <= until && fits(job)) as MemoryJob[];
  }
  const { limit, ...match } = which;
  const jobs: MemoryJob[] = [];
  for (const job of deadBetween(queue, match)) {
    if (jobs.length >= limit) break;
    if (isAsked(job, match) && fits(job)) jobs.push(job);
  }
  return jobs;
}

function takeAway(
  queue: MemoryQueue,
  jobs: readonly MemoryJob[],
  limits: QueueLimits,
): { removed: readonly string[] } {
  queue.freeing(() => jobs.forEach((job) => queue.forget(job)));
  freeKeysOf(queue, jobs);
  queue.say(sayAll('removed', jobs, { reason: 'asked' }), limits);
  return { removed: jobs.map(({ id }) => id) };
}

/** Jobs of one state that are old enough, in the order of cleaning. */
function* oldOnes(queue: MemoryQueue, { state, olderThanMs }: CleanCall): Generator<MemoryJob> {
  const { now } = queue;
  const isOld = (since: number | null) => olderThanMs <= 0 || (since !== null && since <= now - olderThanMs);
  const byAdding = (job: MemoryJob) => isOld(addedAt(job));
  switch (state) {
    case 'waiting':
      yield* headOf(queue.wait, byAdding);
      yield* headOf(queue.suspects, byAdding);
      yield* queue.prioritized.sorted().filter(byAdding);
      yield* queue.limits.grouped.sorted().filter(byAdding);
      return;
    case 'delayed':
      yield* queue.delayed.sorted().filter(byAdding);
      return;
    case 'completed':
    case 'cancelled':
      // A job whose retention is over counts as gone.
      yield* queue.completed
        .sorted()
        .filter((job) => job.state === state && job.keptUntil > now && isOld(job.end?.at ?? null));
      return;
    case 'dead':
      yield* deadBetween(queue, { olderThanMs });
  }
}

function* headOf(line: Line, fits: (job: MemoryJob) => boolean): Generator<MemoryJob> {
  let left = 0;
  for (const job of line) {
    if (fits(job)) yield job;
    else if (++left === HEAD) return;
  }
}

/** The second line of a body is when the job was added, in base 36. */
export function addedAt({ body }: MemoryJob): number | null {
  const found = /^[^\n]*\n([0-9a-z]+)\n/.exec(body);
  return found ? Number.parseInt(found[1]!, 36) : null;
}

/** Dead jobs between two ages, earliest death first. */
export function deadBetween(
  { dead, now }: MemoryQueue,
  { olderThanMs = 0, newerThanMs = -1 }: DeadMatch,
): readonly MemoryJob[] {
  const first = newerThanMs >= 0 ? now - newerThanMs : -Infinity;
  const last = olderThanMs > 0 ? now - olderThanMs : Infinity;
  return dead.sorted().filter(({ score }) => score >= first && score <= last);
}

/** Whether a job has one of the given names and, if it is dead, the given reason. */
export function isAsked(job: MemoryJob, { name, reason }: DeadMatch): boolean {
  // Compared as text, because the record may have been written by hand.
  if (reason !== undefined && !job.failure?.json.endsWith(`"reason":"${reason}"}`)) return false;
  return name === undefined || [name].flat().includes(job.name);
}
