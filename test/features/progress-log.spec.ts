import { expect, it } from 'vitest';
import { InvalidPayloadError } from '#lib/errors.js';
import type { Job } from '#lib/job/job.js';
import { bootQueue, PATIENT, type Handlers } from '../support/queue-app.js';
import { useRedis } from '../support/redis.js';
import { latch, until } from '../support/wait.js';

const redis = useRedis();
const KEPT = { defaults: { retention: '1h', attempts: 1 } } as const;

it('shows progress and log of a run while it runs, to every process', async () => {
  const gates = [latch('the first gate'), latch('the second gate')];
  const marks = [latch('the first mark'), latch('the second mark')];
  const handlers: Handlers = {
    job: async (job: Job) => {
      for (const [i, percent] of [25, 75].entries()) {
        await job.progress({ percent });
        await job.log(`at ${percent} %`);
        marks[i]!.open();
        await gates[i]!.promise;
      }
    },
  };
  const worker = await bootQueue(redis, { handlers, queue: KEPT });
  const viewer = await bootQueue(redis, { queue: KEPT, watch: false });
  const { id } = await viewer.queue.add('job', 1);
  await marks[0]!.wait(PATIENT);
  expect(await viewer.queue.get(id)).toMatchObject({
    state: 'active',
    progress: { percent: 25 },
    logs: [{ attempt: 1, text: 'at 25 %' }],
  });
  gates[0]!.open();
  await marks[1]!.wait(PATIENT);
  expect(await viewer.queue.get(id)).toMatchObject({
    progress: { percent: 75 },
    logs: [
      { attempt: 1, text: 'at 25 %' },
      { attempt: 1, text: 'at 75 %' },
    ],
  });
  gates[1]!.open();
  await worker.ended(id);
  // Kept as long as the job.
  expect(await viewer.queue.get(id)).toMatchObject({
    state: 'completed',
    progress: { percent: 75 },
    logs: [{ text: 'at 25 %' }, { text: 'at 75 %' }],
  });
  const progress = worker.said.values.filter((event) => event.type === 'progress');
  expect(progress).toMatchObject([{ progress: { percent: 25 } }, { progress: { percent: 75 } }]);
});

it('accepts any JSON as progress, and refuses other values without failing the job', async () => {
  const values = [0, '', false, null, [], {}, 'half way', { nested: [1, { a: '\u2028' }] }];
  const errors: unknown[] = [];
  const handlers: Handlers = {
    job: async (job: Job) => {
      for (const value of values) await job.progress(value);
      for (const wrong of [undefined, 1n, () => 1]) {
        errors.push(await job.progress(wrong).catch((error: unknown) => error));
        // Nobody awaits this promise. Its rejection must not end the process.
        void job.progress(wrong);
      }
      return 'done';
    },
  };
  const { queue, ended, said } = await bootQueue(redis, { handlers, queue: KEPT });
  const { id } = await queue.add('job', 1);
  expect((await ended(id)).type).toBe('completed');
  expect(said.values.flatMap((event) => (event.type === 'progress' ? [event.progress] : []))).toEqual(values);
  expect((await queue.get(id))!.progress).toEqual(values.at(-1));
  expect(errors).toEqual([1, 2, 3].map(() => expect.any(InvalidPayloadError)));
  expect((errors[1] as Error).message).toContain('progress() is a BigInt');
});

it('keeps the last 100 lines of a log, each up to 2,000 characters', async () => {
  const handlers: Handlers = {
    job: async (job: Job) => {
      for (let i = 1; i <= 130; i++) await job.log(`line ${i}`);
      await job.log('x'.repeat(5000));
    },
  };
  const { queue, ended } = await bootQueue(redis, { handlers, queue: KEPT });
  const { id } = await queue.add('job', 1);
  await ended(id);
  const logs = (await queue.get(id))!.logs.map(({ text }) => text);
  expect(logs).toHaveLength(100);
  expect(logs[0]).toBe('line 32');
  expect(logs[98]).toBe('line 130');
  expect(logs[99]).toBe('x'.repeat(2000));
});

it('turns any logged value into one safe line', async () => {
  const lines: [unknown, string | null][] = [
    ['two\nlines', 'two lines'],
    ['carriage\r\nreturns\rtoo', 'carriage returns too'],
    ['many\n\n\n\n   lines', 'many lines'],
    ['unicode\u2028line\u2029ends\u0085here', 'unicode line ends here'],
    ['\u001b[2J{"level":"fatal"}', '\ufffd[2J{"level":"fatal"}'],
    ['nul\u0000 bell\u0007 \u009b1m', 'nul\ufffd bell\ufffd \ufffd1m'],
    ['a\ttab stays', 'a\ttab stays'],
    ['🦆 é', '🦆 é'],
    ['', null],
    [42, '42'],
    [undefined, 'undefined'],
    [null, 'null'],
    [Symbol('s'), 'Symbol(s)'],
    // Nothing can turn this value into a text.
    [Object.create(null), '{} (object)'],
  ];
  const handlers: Handlers = {
    job: async (job: Job) => {
      for (const [line] of lines) await job.log(line as string);
    },
  };
  const { queue, ended } = await bootQueue(redis, { handlers, queue: KEPT });
  const { id } = await queue.add('job', 1);
  expect((await ended(id)).type).toBe('completed');
  expect((await queue.get(id))!.logs).toEqual(
    lines.flatMap(([, text]) => (text === null ? [] : [{ attempt: 1, text }])),
  );
});

it('keeps the log over retries with the attempt of each line, and ignores a run that is over', async () => {
  const over = latch('the end of the run');
  const spoken = latch('the late word');
  const handlers: Handlers = {
    job: async (job: Job) => {
      await job.log('began');
      await job.log(`\u001f#9 ${job.attempt}`);
      if (job.attempt === 1) throw new Error('once');
      void over.promise
        .then(() => Promise.all([job.log('too late'), job.progress('too late')]))
        .then(() => spoken.open());
    },
  };
  const { queue, ended } = await bootQueue(redis, { handlers });
  const { id } = await queue.add('job', 1, { attempts: 2, backoff: 0, retention: '1h' });
  await ended(id);
  over.open();
  await spoken.wait(PATIENT);
  await until(async () => (await queue.get(id))?.state === 'completed', PATIENT);
  expect(await queue.get(id)).toMatchObject({
    logs: [1, 2].flatMap((attempt) => [
      { attempt, text: 'began' },
      { attempt, text: `\ufffd#9 ${attempt}` },
    ]),
    progress: null,
  });
});
