import { readFileSync } from 'node:fs';
import { text as readText } from 'node:stream/consumers';
import { JobFailedError, UnknownQueueError } from '../../errors.js';
import type { JobHeaders } from '../../job/headers.js';
import { JsonText } from '../../job/payload.js';
import { counted } from '../../job/text.js';
import type { AddResult } from '../../producer/add-result.js';
import { parseExact, printExact } from '../dashboard/exact-json.js';
import { duration, given, numberOf, type Command, type Context } from './context.js';
import { DONE, FAILED, NotThereError, unknownQueueText } from './failure.js';
import { UsageError } from './usage-error.js';

/** Commands that take the data of a job. */

export const add: Command = {
  name: 'add',
  usage: '<queue> <name>',
  about: 'adds a job',
  words: [2, 2],
  options: {
    data: { type: 'string', short: 'd', about: 'JSON, @file, or - for standard input (default: null)' },
    id: { type: 'string', about: 'an id of your own' },
    delay: duration('run it after this time, e.g. 10m'),
    priority: { type: 'string', about: '1 (first) to 2097151' },
    attempts: { type: 'string', about: 'how often it may run' },
    group: { type: 'string', about: 'its group; groups.by of the application is not applied here' },
    headers: { type: 'string', about: 'headers of the job: a JSON object of short texts' },
    options: {
      type: 'string',
      about: 'other options of the job, e.g. {"lifo":true,"unique":{"key":"import"}}',
    },
    wait: { type: 'boolean', about: 'wait until it ends; exit code 1 if it dies' },
    timeout: duration('how long to wait (default: 30s)'),
    new: { type: 'boolean', about: 'create the queue if there is none with this name' },
  },
  async run(context) {
    const { inspector, words, values, print, signal } = context;
    const [name, jobName] = words as [string, string];
    if (values['new'] !== true) await checkKnown(inspector, name);
    const queue = inspector.queue(name);
    const data = await dataOf(values['data'] as string | undefined);
    const options = {
      ...objectOf('options', values['options'] as string | undefined),
      ...given(context, 'id', 'delay', 'group'),
      ...(values['priority'] !== undefined && { priority: numberOf(context, 'priority', 0) }),
      ...(values['attempts'] !== undefined && { attempts: numberOf(context, 'attempts', 1) }),
      ...(values['headers'] !== undefined && {
        headers: jsonOf('headers', values['headers'] as string) as JobHeaders,
      }),
    };
    if (values['wait'] !== true) {
      const added = await queue.add(jobName, data, options);
      print.done(textOf(added), added);
      return DONE;
    }
    try {
      const waitTimeout = (values['timeout'] as string | undefined) ?? '30s';
      const answer = await queue.addAndWait(jobName, data, { ...options, waitTimeout, signal, detail: true });
      print.done(`job ${answer.id} completed: ${JSON.stringify(answer.result ?? null)}`, answer);
      return DONE;
    } catch (error) {
      if (!(error instanceof JobFailedError)) throw error;
      print.done(error.message, { id: error.jobId, reason: error.reason, error: error.message });
      return FAILED;
    }
  },
};

function textOf({ id, duplicate, replaced, aggregated }: AddResult): string {
  if (aggregated) return `added to job ${id}, which has ${counted(aggregated.size, 'item')} now`;
  if (!duplicate) return `job ${id} added`;
  return replaced ? `job ${id} was there already, and has this data now` : `job ${id} was there already`;
}

/** A job in a queue with a misspelt name would never run. */
async function checkKnown(inspector: Context['inspector'], queue: string): Promise<void> {
  try {
    await inspector.queues([queue]);
  } catch (error) {
    if (!(error instanceof UnknownQueueError)) throw error;
    throw new NotThereError(`${unknownQueueText(error)} (--new creates it)`);
  }
}

export const NEW_DATA = {
  type: 'string',
  short: 'd',
  about: 'its new data: JSON, @file, or - for standard input',
} as const;

export const update: Command = {
  name: 'update',
  usage: '<queue> <id>',
  about: 'changes the data, the time or the priority of a waiting or delayed job',
  words: [2, 2],
  options: {
    data: NEW_DATA,
    delay: duration('run it after this time from now, e.g. 10m'),
    priority: { type: 'string', about: '1 (first) to 2097151; 0 for none' },
  },
  async run(context) {
    const { inspector, words, values, print } = context;
    const [queue, id] = words as [string, string];
    const { data, priority } = values;
    const changes = {
      ...(data !== undefined && { data: await dataOf(data as string) }),
      ...given(context, 'delay'),
      ...(priority !== undefined && { priority: numberOf(context, 'priority', 0) }),
    };
    if (Object.keys(changes).length === 0)
      throw new UsageError('update: give --data, --delay or --priority', '');
    await inspector.queues([queue]);
    const updated = await inspector.queue(queue).update(id, changes);
    print.done(`${id} updated: it is ${updated.state}`, updated);
    return DONE;
  },
};

export async function dataOf(source: string | undefined): Promise<unknown> {
  if (source === undefined) return null;
  const json =
    source === '-'
      ? await readText(process.stdin)
      : source.startsWith('@')
        ? fileOf(source.slice(1))
        : source;
  const value = jsonOf('data', json);
  const tree = parseExact(json);
  // JSON that is nested too deep for `parseExact` is stored with the numbers of JavaScript.
  return tree === null ? value : new JsonText(printExact(tree));
}

function jsonOf(option: string, json: string): unknown {
  try {
    return JSON.parse(json) as unknown;
  } catch (error) {
    throw new UsageError(`--${option} is not valid JSON: ${(error as Error).message}`, '');
  }
}

function objectOf(option: string, json: string | undefined): object {
  const value = json === undefined ? {} : jsonOf(option, json);
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new UsageError(`--${option} must be a JSON object, such as {"lifo":true}`, '');
  return value;
}

function fileOf(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    throw new UsageError(`--data: ${(error as Error).message}`, '');
  }
}
