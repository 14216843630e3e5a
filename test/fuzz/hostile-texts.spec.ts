import { Logger } from '@nestjs/common';
import { describe, expect, it, vi } from 'vitest';
import { Log } from '#lib/contract/log.js';
import { OnQueueEvent } from '#lib/decorators/on-queue-event.decorator.js';
import {
  BootstrapError,
  HandlerNotCalledError,
  InvalidOptionError,
  JobAbortedError,
  JobFailedError,
  JobNotFoundError,
  NestConflictError,
  NotRunningError,
  PartialBulkError,
  QueueConflictError,
  RedisRefusedError,
  RedisUnavailableError,
  ResultNotKeptError,
  ScheduleNotFoundError,
  SchemaViolationError,
  UnknownQueueError,
  UnrecoverableError,
  UnsupportedRedisError,
  WaitTimeoutError,
  WrongStateError,
} from '#lib/errors.js';
import { escaped, escapedStack } from '#lib/errors/show.js';
import type { Job } from '#lib/job/job.js';
import { godwit } from '../cli/support.js';
import { bootQueue, PATIENT } from '../support/queue-app.js';
import { useRedis } from '../support/redis.js';
import { until } from '../support/wait.js';

/** Clears the screen, forges a line, turns the text round, and is not well-formed. */
const HOSTILE =
  'a\u001b[2J\r\n{"level":"fatal"}\u0000\u0085\u2028\u2029\u202e\u2066\u061c\ufeff\u00ad\u180e\u200b\u2060\ud800z';
const UNSAFE =
  // oxlint-disable-next-line no-control-regex
  /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060\u2066-\u2069\ufeff]|\p{Surrogate}/u;

const redis = useRedis();

describe('a hostile text', () => {
  it('is escaped, and the rest stays as it is', () => {
    expect(escaped('é \u{1f600} "q" \\n')).toBe('é \u{1f600} "q" \\n');
    expect(escaped(HOSTILE)).toBe(
      'a\\u001b[2J\\u000d\\u000a{"level":"fatal"}\\u0000\\u0085\\u2028\\u2029\\u202e\\u2066\\u061c\\ufeff\\u00ad\\u180e\\u200b\\u2060\\ud800z',
    );
    expect(escapedStack(`Error: one\nforged\n    at a (b:1)\n    at c\u001b[1m`)).toBe(
      'Error: one\\u000aforged\n    at a (b:1)\n    at c\\u001b[1m',
    );
  });

  it.each<[string, Error]>([
    ['a job id', new JobNotFoundError('q', HOSTILE)],
    ['a queue', new UnknownQueueError(HOSTILE, [HOSTILE])],
    ['an option', new InvalidOptionError(`add()${HOSTILE}`, HOSTILE, HOSTILE)],
    ['a state', new WrongStateError(HOSTILE, HOSTILE, HOSTILE, HOSTILE)],
    ['a cause', new PartialBulkError([], 1, new Error(HOSTILE))],
    ['what a handler threw', new JobFailedError('q', HOSTILE, HOSTILE, HOSTILE)],
    ['why there is no result', new ResultNotKeptError('q', HOSTILE, HOSTILE)],
    ['a wait', new WaitTimeoutError(HOSTILE, HOSTILE, 1)],
    ['a verb and a reason', new RedisUnavailableError(HOSTILE, 'no', HOSTILE)],
    ['a reply of Redis', new RedisRefusedError(HOSTILE, HOSTILE, HOSTILE)],
    ['a server', new UnsupportedRedisError(HOSTILE, HOSTILE)],
    ['a call', new NotRunningError(HOSTILE)],
    ['the options of a queue', new QueueConflictError(HOSTILE, HOSTILE, HOSTILE)],
    ['a path', new NestConflictError(undefined, { version: HOSTILE, path: HOSTILE })],
    ['a schedule', new ScheduleNotFoundError(HOSTILE, HOSTILE)],
    ['a handler', new HandlerNotCalledError(HOSTILE, HOSTILE)],
    ['a cancel reason', new JobAbortedError('cancelled', HOSTILE, 1, HOSTILE)],
    [
      'the issues of a schema',
      new SchemaViolationError('q', HOSTILE, [{ message: HOSTILE, path: HOSTILE }], 'add'),
    ],
  ])('is escaped in the message of an error: %s', (_, error) => {
    expect(error.message).not.toMatch(UNSAFE);
  });

  it('is escaped in each fault of a BootstrapError, and left as it is in an error of the handler’s own', () => {
    const error = new BootstrapError([HOSTILE, 'two']);
    expect(error.message.split('\n')).toHaveLength(3);
    expect(error.message.replaceAll('\n', '')).not.toMatch(UNSAFE);
    expect(error.faults[0]).not.toMatch(UNSAFE);
    expect(new UnrecoverableError(HOSTILE).message).toBe(HOSTILE);
  });

  it.each(['debug', 'log', 'warn', 'error'] as const)('is escaped in the log: %s', (level) => {
    const seen = vi.spyOn(Logger.prototype, level).mockImplementation(() => {});
    new Log('Test')[level](HOSTILE, `Error: ${HOSTILE}\n    at a\u001b`);
    for (const text of seen.mock.calls.flat().map(String))
      expect(text.replaceAll('\n    at', '')).not.toMatch(UNSAFE);
    expect(seen).toHaveBeenCalledOnce();
    seen.mockRestore();
  });

  it('reaches no line of the log from listeners, subscribers, backoff functions, results and ids', async () => {
    class Listener {
      hear(): void {
        throw new Error(HOSTILE);
      }
    }
    OnQueueEvent('completed')(
      Listener.prototype,
      'hear',
      Object.getOwnPropertyDescriptor(Listener.prototype, 'hear')!,
    );
    const app = await bootQueue(redis, {
      providers: [Listener],
      queue: {
        defaults: {
          attempts: 2,
          retention: '1h',
          backoff: () => {
            throw new Error(HOSTILE);
          },
        },
      },
      handlers: {
        odd: () => ({
          toJSON() {
            throw new Error(HOSTILE);
          },
        }),
        fail: (job: Job) => {
          if (job.attempt === 1) throw new Error(HOSTILE);
        },
      },
    });
    app.events.of('work').subscribe(() => {
      throw new Error(HOSTILE);
    });
    const id = 'right \u202e left \u2066';
    await app.queue.add('odd', 1, { id });
    await app.queue.add('fail', 1);
    const complaints = () => app.logs.complaints.filter((text) => text.includes('\\u001b'));
    await until(() => complaints().length >= 4, PATIENT);
    await app.logs.complaint(/its result is not kept/);
    await app.logs.complaint(/Listener\.hear failed/);
    await app.logs.complaint(/backoff function failed/);
    for (const { text } of app.logs.lines) expect(text).not.toMatch(UNSAFE);
  });

  it('reaches no line of the command’s output', async () => {
    const command = godwit([
      'dispatch',
      '-d',
      `x${HOSTILE.replaceAll('\u0000', '')}`,
      '-r',
      '\u001b[2J\n',
      '-n',
      '\u001b[31m0',
    ]);
    await command.ended();
    const [first, second, ...more] = command.err.split('\n');
    expect(first).toMatch(/^godwit: /);
    expect(first).not.toMatch(UNSAFE);
    expect(second).toBe('see godwit dispatch --help');
    expect(more).toEqual(['']);
  });
});
