import { describe, expect, it, vi } from 'vitest';
import { BootstrapError, NotRunningError } from '#lib/errors.js';
import type { ConnectionOption } from '#lib/options/connection.js';
import type { QueueModuleOptions } from '#lib/options/module-options.js';
import { QueueModule } from '#lib/module/queue.module.js';
import { bootQueue, PATIENT, type QueueAppOptions } from '../support/queue-app.js';
import { latch } from '../support/wait.js';

const boot = (options: QueueAppOptions = {}) => bootQueue({ url: 'memory', prefix: 'shop' }, options);

/** The faults for which an application does not start. */
async function faultsOf(root: QueueModuleOptions, imports: NonNullable<QueueAppOptions['imports']> = []) {
  const error: unknown = await boot({ root, imports, watch: false }).catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(BootstrapError);
  return (error as BootstrapError).faults;
}

/** Runs with `NODE_ENV=production`. */
async function inProduction<T>(act: () => Promise<T>): Promise<T> {
  vi.stubEnv('NODE_ENV', 'production');
  try {
    return await act();
  } finally {
    vi.unstubAllEnvs();
  }
}

describe('memory in production', () => {
  it.each<ConnectionOption>(['memory', { memory: true }, { memory: true, inProduction: false }])(
    'is refused: %j',
    async (connection) => {
      expect(await inProduction(() => faultsOf({ connection }))).toEqual([
        "forRoot().connection is 'memory' and NODE_ENV is 'production': every deployment and every crash would lose all " +
          'jobs; set it to the URL of a Redis, or to { memory: true, inProduction: true } if jobs may be lost',
      ]);
    },
  );

  it('starts if that was allowed explicitly', async () => {
    const connection = { memory: true, inProduction: true } as const;
    const { queue } = await inProduction(() =>
      boot({ root: { connection }, handlers: { echo: (job) => job.data as unknown } }),
    );
    expect(await queue.addAndWait('echo', 'still here')).toBe('still here');
  });
});

describe('memory of a configuration with a key', () => {
  const keyed = (options: { connection: ConnectionOption }) => [
    QueueModule.forRoot('drafts', options),
    QueueModule.registerQueue({ name: 'draft', configKey: 'drafts' }),
  ];

  it('is refused in production by its name', async () => {
    const root = { connection: { memory: true, inProduction: true } } as const;
    expect(await inProduction(() => faultsOf(root, keyed({ connection: 'memory' })))).toEqual([
      expect.stringMatching(/^forRoot\('drafts'\)\.connection is 'memory' and NODE_ENV is 'production'/),
    ]);
  });

  it('is separate from the others', async () => {
    const { queueOf, close, logs } = await boot({ imports: keyed({ connection: 'memory' }) });
    await queueOf('draft').add('x', 1, { id: 'same' });
    expect(await queueOf('work').get('same')).toBeNull();
    expect(await queueOf('draft').get('same')).toMatchObject({ state: 'waiting' });
    await close();
    expect(logs.complaints).toEqual([
      expect.stringMatching(/^jobs live in the memory of this process: /),
      "1 job that has not run to the end is lost with the memory of this process: 'draft' 1",
    ]);
  });
});

describe('what needs other processes', () => {
  it.each([
    ['producer', 'run its jobs'],
    ['worker', 'add jobs for it'],
  ] as const)('is refused: the role %s', async (role, what) => {
    expect(await faultsOf({ role })).toEqual([
      `forRoot().role must be 'both' if a connection is 'memory', got '${role}': no other process could ${what}; ` +
        'leave it out, or set connection to the URL of a Redis',
    ]);
  });

  it('is refused: dispatchers, together with everything else', async () => {
    const dispatcher = QueueModule.registerDispatcher({ name: 'mails', delayedKey: 'd', readyKey: 'r' });
    const faults = await inProduction(() => faultsOf({ role: 'producer' }, [dispatcher]));
    expect(faults).toEqual([
      expect.stringContaining("NODE_ENV is 'production'"),
      expect.stringContaining("forRoot().role must be 'both'"),
      "registerDispatcher('mails') moves tasks of other programs, which cannot reach the memory of this process; " +
        "leave it out if connection is 'memory', or set connection to the URL of a Redis",
    ]);
  });

  it('is ignored, with a line in the log: durability', async () => {
    const { queue, logs } = await boot({
      root: { durability: 'replicated', enqueueTimeout: '1s' },
      queue: { durability: { replicas: 3 } },
    });
    await queue.add('x', 1);
    await queue.add('x', 1, { durability: { replicas: 100, timeout: 1 } });
    expect(await queue.counts()).toMatchObject({ waiting: 2 });
    expect(logs.complaints[1]).toBe(
      "the durability of queue 'work' is ignored in memory, which has no replicas: add resolves as soon as the job is stored",
    );
  });

  it('is not mentioned in the log if no queue asks for it', async () => {
    const { logs } = await boot({ root: { durability: 'local' } });
    expect(logs.complaints).toHaveLength(1);
  });
});

describe('the end of the process', () => {
  it('loses the jobs that have not ended, and the log counts them', async () => {
    const began = latch('the run');
    const { queue, queueOf, close, logs } = await boot({
      queues: [{ name: 'other' }, { name: 'empty' }],
      concurrency: 1,
      handlers: {
        hang: (job) => {
          began.open();
          return new Promise((_, reject) =>
            job.signal.addEventListener('abort', () => reject(new Error('stopped'))),
          );
        },
      },
      root: { shutdown: { timeout: 0, grace: '1s' } },
    });
    await queue.add('hang', 'runs');
    await began.wait(PATIENT);
    await queue.add('hang', 'waits');
    await queue.add('hang', 'is delayed', { delay: '1h' });
    await queueOf('other').add('x', 1);
    await close();
    expect(logs.complaints.at(-1)).toBe(
      "4 jobs that have not run to the end are lost with the memory of this process: 'work' 3, 'other' 1",
    );
  });

  it('logs nothing if all jobs have ended', async () => {
    const { queue, close, logs } = await boot({ handlers: { x: () => undefined } });
    await queue.addAndWait('x', 1);
    await close();
    expect(logs.complaints).toHaveLength(1);
    await expect(queue.add('x', 1)).rejects.toThrow(NotRunningError);
  });

  it('counts one job in the singular', async () => {
    const { queue, close, logs } = await boot();
    await queue.add('x', 1);
    await close();
    expect(logs.complaints.at(-1)).toBe(
      "1 job that has not run to the end is lost with the memory of this process: 'work' 1",
    );
  });

  it('comes once, however often the application is closed', async () => {
    const { queue, app, logs } = await boot();
    await queue.add('x', 1);
    await app.close();
    const { complaints } = logs;
    await app.close();
    expect(logs.complaints).toEqual(complaints);
  });

  it('is not the same as a stop of the workers: waiting jobs run after the next start', async () => {
    const { queue, runtime } = await boot({ handlers: { echo: (job) => job.data as unknown } });
    await runtime.stop();
    const waiting = queue.addAndWait('echo', 'later');
    await runtime.start();
    expect(await waiting).toBe('later');
  });
});
