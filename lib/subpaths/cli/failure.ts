import { GodwitError, RedisRefusedError, RedisUnavailableError, UnknownQueueError } from '../../errors.js';
import { messageForOperator } from '../../errors/for-operators.js';
import { withoutEffect } from '../../errors/thrown.js';
import { quoted } from '../../job/text.js';
import { didYouMean, UsageError } from './usage-error.js';

export const DONE = 0;
export const FAILED = 1;
const WRONG_USE = 2;
export const NOT_THERE = 3;
export const UNHEALTHY = 4;
export const STOPPED = 130;

/** Something that the arguments name does not exist. */
export class NotThereError extends Error {}

/** Somebody pressed Ctrl-C at a question. */
export class StoppedError extends Error {}

/** Why a command failed. */
interface Failure {
  readonly exitCode: number;
  /** For programs. */
  readonly code: string;
  readonly message: string;
  /** The usage, or where to find it, for people. */
  readonly usage?: string;
}

/** Errors because something does not exist. */
const ABSENT = /NOT_FOUND$|^GODWIT_UNKNOWN_QUEUE$/;

/** Undefined for an error that the command does not expect. */
export function failureOf(error: unknown, isCluster: boolean): Failure | undefined {
  if (error instanceof UsageError) {
    const { message } = error;
    const usage = error.usage.trimEnd();
    return { exitCode: WRONG_USE, code: 'GODWIT_USAGE', message, ...(usage !== '' && { usage }) };
  }
  if (error instanceof NotThereError)
    return { exitCode: NOT_THERE, code: 'GODWIT_NOT_FOUND', message: error.message };
  if (!(error instanceof GodwitError)) return undefined;
  const otherwise = ABSENT.test(error.code) ? NOT_THERE : FAILED;
  const exitCode = isOfArguments(error) ? WRONG_USE : otherwise;
  return { exitCode, code: error.code, message: messageFor(error, isCluster) };
}

/** Whether the error is about the arguments: a name, an option or data. */
export function isOfArguments({ code }: GodwitError): boolean {
  return /^GODWIT_(INVALID|PAYLOAD|SCHEMA)/.test(code);
}

/** The data that all queues of a prefix share, by the call that reads it. On Redis Cluster it may be on another node than the queues. */
const SHARED: Readonly<Record<string, string>> = {
  'inspector.queues': 'the list of queues',
  'inspector.workers': 'the records of worker processes',
  'inspector.actions': 'the record of actions',
};

/** Messages of errors are written for developers. Some need other words on the command line. */
export function messageFor(error: GodwitError, isCluster: boolean): string {
  const message = messageForOperator(error, 'command');
  if (error instanceof UnknownQueueError) return unknownQueueText(error);
  if (error instanceof RedisRefusedError && error.reply === 'MOVED')
    return `${message}; for a Redis Cluster add --cluster`;
  if (!isCluster || !(error instanceof RedisUnavailableError)) return message;
  const shared = SHARED[error.verb];
  if (shared === undefined) return message;
  const advice =
    error.verb === 'inspector.queues' ? '; commands that name a queue with jobs work without it' : '';
  return unreadableText(shared, error) + advice;
}

/** That what is named could not be read, and why. */
export function unreadableText(what: string, error: RedisUnavailableError): string {
  return `${what} cannot be read${withoutEffect(error).slice(error.verb.length)}`;
}

/** Errors are written for developers, who register queues. */
export function unknownQueueText({ queue, known }: UnknownQueueError): string {
  const near = didYouMean(queue, known) || '; godwit queues lists them';
  return `there is no queue ${quoted(queue)} with this prefix${near}`;
}
