import type { GodwitError } from './base.js';
import type { RedisUnavailableError } from './store.js';
import { withoutEffect } from './thrown.js';

/*
 * The texts of errors for people who use the command or the dashboard. The messages of errors are written for developers: they name
 * options and methods.
 */

/** The tool that a person uses. */
type Tool = 'command' | 'dashboard';

/** After an act that Redis did not confirm. */
export const MAYBE_DONE = 'the change may or may not have been made: look, and repeat it if it was not';
const MAYBE_ADDED =
  'the job may or may not have been added: look for it before you add it again, or it may be there twice';
const PARTLY_DONE = 'a part of the jobs was changed: look, and repeat it for the others';
export const NOTHING_DONE = 'nothing was changed, try again';

/** The end of a message, and its replacements. */
export const ADVICE: readonly (readonly [inCode: string, typed: string, clicked: string])[] = [
  [', or use { force: true }', ', or add --force', ''],
  [
    'use queue.dead.retry(id, { data })',
    'godwit retry <queue> <id> -d JSON runs it again with other data',
    'open it again to retry it',
  ],
  ['only delayed jobs are promoted', 'only delayed jobs are promoted', 'only a delayed job can be run now'],
  [
    'its handler can call job.update()',
    'wait for the end of its run, or cancel it',
    'wait for the end of its run, or cancel it',
  ],
  ['add it again by queue.add()', 'godwit add adds another one', 'add another one'],
  [
    "wait for its end, or let onDuplicate be 'skip', 'replace' or 'keepLast'",
    'wait for its end, or cancel or remove that job first',
    'wait for its end, or cancel or remove that job first',
  ],
  [
    'create it with schedules.upsert() first',
    'godwit schedules lists them',
    'it was removed or never created',
  ],
  [
    'write it again with schedules.upsert()',
    'the application must write it again',
    'the application must write it again',
  ],
  [
    'inspector.workers() and godwit workers list them',
    'godwit workers lists them',
    'the page Workers lists them',
  ],
  ['bulkActs.list() lists those that are kept', 'its record was removed', 'its record was removed'],
];

/**
 * The message of an error for a person.
 *
 * @param otherwise the effect of the act, if the error is that of a read and does not contain it.
 */
export function messageForOperator(error: GodwitError, tool: Tool, otherwise?: string): string {
  const { message } = error;
  if (isUnavailable(error)) {
    // The name of the call says nothing to a person who clicks.
    const why = withoutEffect(error).slice(tool === 'dashboard' ? `${error.verb}: `.length : 0);
    const effect = effectOf(error) ?? otherwise;
    return effect === undefined ? why : `${why}; ${effect}`;
  }
  const [inCode, ...others] = ADVICE.find(([end]) => message.endsWith(end)) ?? ['', '', ''];
  return message.slice(0, message.length - inCode.length) + others[tool === 'command' ? 0 : 1];
}

/** Undefined for a read. */
function effectOf(error: RedisUnavailableError): string | undefined {
  if (withoutEffect(error) === error.message) return undefined;
  if (error.applied === 'no') return NOTHING_DONE;
  if (error.applied === 'partly') return PARTLY_DONE;
  return error.verb === 'add' ? MAYBE_ADDED : MAYBE_DONE;
}

function isUnavailable(error: GodwitError): error is RedisUnavailableError {
  return error.code === 'GODWIT_REDIS_UNAVAILABLE';
}
