import { describe, expect, it } from 'vitest';
import { UnrecoverableError } from '#lib/errors.js';
import { Snooze } from '#lib/job/job.js';
import type { QueueModuleOptions } from '#lib/options/module-options.js';
import { bootQueue, Logs, PATIENT, processorOf, type Handlers } from '../support/queue-app.js';
import { useRedis } from '../support/redis.js';
import { latch, until } from '../support/wait.js';

const redis = useRedis();
const SECRET = 'password-of-ada';

/** Lines with their level. Errors have the first line of their stack. */
class AllLogs extends Logs {
  readonly stacks: unknown[] = [];
  override error = (text: unknown, stack?: unknown) => {
    this.lines.push({ level: 'error', text: String(text) });
    this.stacks.push(stack);
  };
}

const boot = (handlers: Handlers, log: QueueModuleOptions['log'] = {}, queue: object = {}) =>
  bootQueue(redis, { handlers, root: { log }, queue, logs: new AllLogs() });
const about = ({ logs }: { logs: Logs }, id: string) =>
  logs.lines.filter(({ text }) => text.includes(`"${id}"`));

describe('the log of failures', () => {
  const failing = {
    flaky: () => {
      throw new TypeError('the mail server\nsays no');
    },
    final: () => {
      throw new UnrecoverableError('no such user');
    },
    snoozing: ({ attempt, stalls }: { attempt: number; stalls: number }) => {
      if (attempt + stalls > 0 && !snoozed.has('once')) {
        snoozed.add('once');
        throw new Snooze(1);
      }
    },
    odd: () => Promise.reject(null),
    fine: () => SECRET,
  } as unknown as Handlers;
  const snoozed = new Set<string>();

  it('has a line for each failed attempt, and an error with the stack for a dead job', async () => {
    const app = await boot(failing);
    const { id } = await app.queue.add('flaky', { SECRET }, { attempts: 3, backoff: [5, 1] });
    await app.ended(id);
    expect(about(app, id)).toEqual([
      {
        level: 'warn',
        text: `job "${id}" of queue 'work' (flaky): attempt 1 of 3 failed, next in 5 ms: TypeError: the mail server says no`,
      },
      {
        level: 'warn',
        text: `job "${id}" of queue 'work' (flaky): attempt 2 of 3 failed, next in 1 ms: TypeError: the mail server says no`,
      },
      {
        level: 'error',
        text: `job "${id}" of queue 'work' (flaky) is dead after attempt 3 of 3, retries-exhausted: TypeError: the mail server says no`,
      },
    ]);
    expect((app.logs as AllLogs).stacks).toEqual([expect.stringMatching(/failure-log\.spec/)]);
    expect(JSON.stringify(app.logs.lines)).not.toContain(SECRET);
  });

  it('names the reason of other deaths, and has no line for runs that did not fail', async () => {
    const app = await boot(failing, {}, { defaults: { attempts: 1, retention: '1h' } });
    const ids: string[] = [];
    for (const name of ['final', 'odd', 'snoozing', 'fine']) {
      const { id } = await app.queue.add(name, { SECRET });
      await app.ended(id);
      ids.push(id);
    }
    const [final, odd] = ids;
    expect(ids.flatMap((id) => about(app, id)).map(({ text }) => text)).toEqual([
      `job "${final}" of queue 'work' (final) is dead after attempt 1 of 1, unrecoverable: UnrecoverableError: no such user`,
      `job "${odd}" of queue 'work' (odd) is dead after attempt 1 of 1, retries-exhausted: the handler threw null (null)`,
    ]);
  });

  it('counts further failures after ten lines in a second', async () => {
    const app = await boot(failing, {}, { defaults: { attempts: 1 } });
    await app.queue.addBulk(Array.from({ length: 200 }, () => ({ name: 'final', data: null })));
    await app.said.take(200, ({ type }) => type === 'dead', PATIENT);
    await app.runtime.stop();
    const lines = app.logs.lines.filter(({ level }) => level === 'error').map(({ text }) => text);
    const more = lines.filter((text) =>
      text.includes(' more dead jobs within a second, not logged one by one'),
    );
    const told = more.reduce(
      (sum, text) => sum + Number(/: ([\d,]+) more/.exec(text)![1]!.replaceAll(',', '')),
      0,
    );
    expect(lines.length - more.length + told).toBe(200);
    expect(lines.length).toBeLessThan(100);
  });

  it('counts runs that return after they were over, after ten lines in a second', async () => {
    const over = latch('the time after the timeouts');
    const app = await bootQueue(redis, {
      handlers: { slow: () => over.promise },
      queue: { defaults: { attempts: 1 } },
      logs: new AllLogs(),
      concurrency: 50,
    });
    const jobs = Array.from({ length: 50 }, () => ({ name: 'slow', data: 1, options: { timeout: 1 } }));
    await app.queue.addBulk(jobs);
    await app.said.take(50, ({ type }) => type === 'dead', PATIENT);
    over.open();
    await app.runtime.stop();
    const late = app.logs.lines
      .map(({ text }) => text)
      .filter((text) => text.includes('after its run was over'));
    expect(late).toHaveLength(10);
    const more = "queue 'work': 40 more runs that ended too late within a second, not logged one by one";
    expect(app.logs.lines).toContainEqual({ level: 'warn', text: more });
  });

  it.each([
    ['failures', { failures: false }, {}, ['error']],
    ['deaths', { deaths: false }, {}, ['warn']],
    ['all', false, {}, []],
    ['all but the failures of a queue', false, { log: { failures: true } }, ['warn']],
    ['what a queue turns off', true, { log: false }, []],
  ] as const)('can be turned off: %s', async (_, log, queue, levels) => {
    const app = await boot(failing, log, queue);
    const { id } = await app.queue.add('flaky', null, { attempts: 2, backoff: 1 });
    await app.ended(id);
    expect(about(app, id).map(({ level }) => level)).toEqual(levels);
  });
});

describe('the log of start and stop', () => {
  const stopping = async (log: QueueModuleOptions['log']) => {
    const started = latch('started');
    const gate = latch('the job may end');
    const handlers = {
      '*': async () => {
        started.open();
        await gate.wait(PATIENT);
      },
    };
    const app = await bootQueue(redis, {
      root: { log, shutdown: { timeout: '25s' } },
      queues: [{ name: 'email' }],
      providers: [processorOf('email', handlers)],
    });
    const { id } = await app.queueOf('email').add('welcome', { SECRET });
    await started.wait(PATIENT);
    const stopped = app.runtime.stop();
    await until(() => app.runtime.state === 'draining', PATIENT);
    gate.open();
    await stopped;
    return { id, lines: app.logs.lines.map(({ text }) => text) };
  };

  it('names the jobs that a stop waits for, and what has started on which server', async () => {
    const { id, lines } = await stopping(true);
    expect(lines).toContain(`waiting up to 25 s for 1 running job: email welcome (${id})`);
    expect(lines).toContain("queue 'email' stopped: 1 running job finished meanwhile, 0 given back");
    expect(lines).toContainEqual(
      expect.stringMatching(/^workers started: email \(concurrency 10\); godwit \S+ on \S+/),
    );
  });

  it('can be turned off', async () => {
    const { lines } = await stopping({ start: false, stop: false });
    expect(lines.filter((text) => /^workers started|waiting|drained|Redis of/.test(text))).toEqual([]);
  });
});
