import type { AddArgs, Call, RunArgs, RunValue } from './record.js';
import { nameOf, type IdStory, type Story } from './story.js';

/** Largest difference of clocks and timers, in ms. */
const EARLY_MS = 3;

type Check = (job: IdStory, story: Story) => readonly string[];

const of = (job: IdStory, verb: Call['verb']) => job.calls.filter((call) => call.verb === verb);
const tagOf = (call: Call) => (call.args as unknown as RunArgs | AddArgs).tag;
const endingOf = (run: Call) => (run.value as RunValue | null)?.ending;
const mayHaveRetried = (job: IdStory) => of(job, 'retry').some(mayHaveHappened);
const mayHaveHappened = ({ verb, outcome, value }: Call) =>
  outcome === 'indeterminate' || (outcome === 'ok' && (verb !== 'retry' || value === 'retried'));

/** Each check looks for one kind of broken promise at one id, and describes each case in a sentence. */
export const LEDGER_CHECKS: Readonly<Record<string, Check>> = {
  /** A job whose `add` is acknowledged ends. At the end of a history no job waits or runs. */
  'not lost': (job, story) => {
    const last = of(job, 'get').at(-1);
    if (!last || last.outcome !== 'ok') return [];
    const value = last.value as { state: string; tag: string } | null;
    if (value !== null) {
      const isLeft = last.args['final'] === true && value.state !== 'completed' && value.state !== 'dead';
      return isLeft ? [`${value.tag} is still ${value.state} at the end`] : [];
    }
    if (last.args['final'] !== true) return [];
    const isTaken = job.calls.some(
      (call) => ['cancel', 'remove', 'clean'].includes(call.verb) && mayHaveHappened(call),
    );
    return of(job, 'add')
      .filter(({ outcome, value: answer }) => outcome === 'ok' && answer === 'added')
      .filter(
        (add) => !isTaken && !(story.runs.get(tagOf(add)) ?? []).some((run) => endingOf(run) !== undefined),
      )
      .map((add) => `${tagOf(add)} was acknowledged, never ran to an end, and is gone`);
  },

  /** A job does not run if its add was refused or a duplicate, or if nobody added it. */
  'no phantom': (job, story) =>
    of(job, 'run').flatMap((run) => {
      const add = story.adds.get(tagOf(run));
      if (!add) return [`${tagOf(run)} ran and was never added`];
      if (add.call.outcome === 'error')
        return [`${tagOf(run)} ran though its add was refused as not applied`];
      return add.call.value === 'duplicate'
        ? [`${tagOf(run)} ran though its add was answered as a duplicate`]
        : [];
    }),

  /** A job that was cancelled or removed while it waited does not start afterwards. */
  'not run after it was taken out': (job, story) =>
    job.calls
      .filter(
        ({ verb, outcome, value }) =>
          outcome === 'ok' &&
          ((verb === 'cancel' && value === 'cancelled') ||
            (verb === 'remove' && value === 'removed') ||
            verb === 'clean'),
      )
      .flatMap((taken) =>
        of(job, 'add')
          .filter(({ outcome, value, end }) => outcome === 'ok' && value === 'added' && end! < taken.start)
          .flatMap((add) =>
            of(job, 'run').filter(
              (run) => tagOf(run) === tagOf(add) && run.start > taken.end! && !story.isStale(run),
            ),
          )
          .map(
            (run) => `${tagOf(run)} began ${Math.round(run.start - taken.end!)} ms after its ${taken.verb}`,
          ),
      ),

  /** Each attempt has one outcome. */
  'settled once': (job, story) => {
    if (mayHaveRetried(job)) return [];
    const ends = new Map<string, string[]>();
    for (const run of of(job, 'run')) {
      const isEnd = ['returned', 'buried'].includes(endingOf(run) ?? '');
      if (isEnd && story.settled.get(nameOf(run))?.value === 'accepted')
        ends.set(tagOf(run), [...(ends.get(tagOf(run)) ?? []), nameOf(run)]);
    }
    return [...ends]
      .filter(([, runs]) => runs.length > 1)
      .map(([tag, runs]) => `${tag} was ended by ${runs.join(' and ')}`);
  },

  /** A job does not start before its time, and its next attempt not before its backoff or snooze is over. */
  'not early': (job, story) => {
    const isHurried = of(job, 'promote').length > 0 || mayHaveRetried(job);
    return of(job, 'run').flatMap((run) => {
      const add = story.adds.get(tagOf(run));
      if (!add || isHurried) return [];
      const due = add.call.start + (add.args.delay ?? 0);
      const early = due - run.start;
      return early > EARLY_MS
        ? [`${tagOf(run)} began ${Math.round(early)} ms before its time`]
        : backoffOf(run, add.args, story);
    });
  },

  /** Only a job that never started expires. */
  'started jobs do not expire': (job, story) => {
    if (mayHaveRetried(job)) return [];
    return of(job, 'get').flatMap(({ value, start }) => {
      const seen = value as { tag: string; reason?: string } | null;
      const isExpired = seen?.reason === 'expired';
      // A store that has lost a claim refuses the settlement, and does not know that the job had started.
      const counts = (run: Call) => !story.mayForget || !story.isStale(run);
      const began = isExpired && story.runs.get(seen.tag)?.some((run) => run.start < start && counts(run));
      return began ? [`${seen.tag} is dead as expired, and had begun`] : [];
    });
  },

  /** No more attempts fail than the job may have. */
  'attempts kept': (job, story) => {
    if (mayHaveRetried(job)) return [];
    return [...new Set(of(job, 'run').map(tagOf))].flatMap((tag) => {
      const attempts = story.adds.get(tag)?.args.attempts;
      const failed = (story.runs.get(tag) ?? []).filter(
        (run) =>
          ['failed', 'buried'].includes(endingOf(run) ?? '') &&
          story.settled.get(nameOf(run))?.value === 'accepted',
      );
      return attempts !== undefined && failed.length > attempts
        ? [`${tag} failed ${failed.length} times of ${attempts}`]
        : [];
    });
  },

  /** A caller that waits gets the result of a run of the job. */
  'right result': (job, story) =>
    of(job, 'wait').flatMap((wait) => {
      if (wait.outcome !== 'ok') return [];
      const results = (story.runs.get(tagOf(wait)) ?? []).map((run) =>
        JSON.stringify((run.value as RunValue | null)?.result),
      );
      const answer = JSON.stringify(wait.value);
      return results.includes(answer)
        ? []
        : [`${tagOf(wait)} was answered with ${answer}, its runs returned ${results.join()}`];
    }),
};

function backoffOf(run: Call, { backoff }: AddArgs, story: Story): readonly string[] {
  const before = (story.runs.get(tagOf(run)) ?? []).findLast(
    ({ end, value }) => value !== null && end !== null && end <= run.start,
  );
  const value = before?.value as RunValue | undefined;
  if (!before || story.settled.get(nameOf(before))?.value !== 'accepted') return [];
  const pause =
    value!.ending === 'failed' ? backoff : value!.ending === 'snoozed' ? value!.snooze : undefined;
  const early = pause === undefined ? 0 : before.end! + pause - run.start;
  return early > EARLY_MS
    ? [`${tagOf(run)} began ${Math.round(early)} ms before its pause of ${pause} ms was over`]
    : [];
}
