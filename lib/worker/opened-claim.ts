import type { ClaimedJob } from '../contract/engine.js';
import { decodeBody, expiresAt, NO_OPTIONS } from '../job/job-record.js';
import type { Outcome } from '../job/outcome.js';
import { quoted } from '../job/text.js';
import { mergeJobPolicy, type JobPolicy } from '../options/job-options.js';
import type { FindHandler, HandlerEntry } from './handler.js';
import { Run, type RunVoice } from './run.js';
import type { UnknownJobs } from './unknown-jobs.js';
import { unrunnable } from './verdict.js';
import { RULES } from '../job/rules.js';

/** What a queue runs its jobs with. */
export interface Opening {
  readonly queue: string;
  readonly policy: JobPolicy;
  readonly find: FindHandler;
  readonly voice: RunVoice;
  /** For jobs without a handler. @default they are dead */
  readonly unknown?: UnknownJobs;
  /** The store's clock. */
  readonly now: () => number;
}

/** A claimed job is run, or is over without a run. */
export type OpenedClaim =
  | { readonly run: Run; readonly handler: HandlerEntry }
  | { readonly name: string; readonly outcome: Outcome; readonly complaint?: string };

/** Reads what was claimed: for which handler it is, and whether it can be run at all. */
export function openClaim(
  job: ClaimedJob,
  { queue, policy, find, voice, unknown, now }: Opening,
): OpenedClaim {
  const { failed } = job;
  const body = decodeBody(job.body);
  if (!body) return { name: '', outcome: unrunnable('malformed', 'its body cannot be decoded', failed) };
  const { name } = body;
  const own = body.options === NO_OPTIONS ? policy : mergeJobPolicy(body.options, policy, policy);
  const expires = expiresAt(body, own.expiresInMs);
  if (expires !== undefined && isNew(job) && now() > expires) {
    const why = `it was not started within ${own.expiresInMs} ms`;
    return { name, outcome: unrunnable('expired', why, failed) };
  }
  const handler = find(name);
  if (!handler) {
    const complaint = `no @Handle('${quoted(name).slice(1, -1)}') in the processors of queue '${queue}'`;
    const outcome =
      unknown?.outcomeOf(job, body, own, complaint, now()) ?? unrunnable('no-handler', complaint, failed);
    return { name, outcome, complaint };
  }
  return { run: new Run(job.id, failed + 1, job.stalls, body, own, voice), handler };
}

/** It has not started before, as far as is known, and nobody has retried it: only such a job expires. */
function isNew({ failed, stalls, started }: ClaimedJob): boolean {
  return failed === 0 && stalls === 0 && !started;
}

/** Jobs that have stalled this often come one at a time. */
export function isSuspect(job: { readonly stalls: number }): boolean {
  return job.stalls >= RULES.suspectAfter;
}
