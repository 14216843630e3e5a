import { expect, test } from 'vitest';
import { useRedis } from '../../../test/support/redis.js';
import { until } from '../../../test/support/wait.js';
import { startSample, type Sample } from './support/sample.js';

const redis = useRedis();

const ended = ({ events }: Sample, id: string) =>
  events.first((event) => event.jobId === id && (event.type === 'completed' || event.type === 'dead'), {
    timeout: 15_000,
  });

test('POST /audio/transcode adds a job; it runs, tells its progress, and the listener hears its end', async () => {
  const sample = await startSample(redis);
  const response = await fetch(`${sample.url}/audio/transcode`, { method: 'POST' });
  expect(response.status).toBe(201);
  const { id } = (await response.json()) as { id: string };
  expect(await ended(sample, id)).toMatchObject({ type: 'completed', name: 'transcode', attempt: 1 });
  const told = sample.events.values.filter((event) => event.type === 'progress');
  expect(told.map(({ progress }) => progress)).toEqual([25, 50, 75, 100]);
  await until(() => sample.logs.lines.some(({ text }) => text === `Job ${id} completed`));
  expect(sample.logs.lines.map(({ text }) => text)).toEqual(
    expect.arrayContaining(['Start transcoding audio.mp3...', 'Transcoding completed']),
  );
});

test('each name of a job has its method', async () => {
  const sample = await startSample(redis);
  const { id } = (await (await fetch(`${sample.url}/audio/concatenate`, { method: 'POST' })).json()) as {
    id: string;
  };
  expect(await ended(sample, id)).toMatchObject({ type: 'completed', name: 'concatenate' });
  expect(await sample.audio.addAndWait('concatenate', { files: ['a.mp3', 'b.mp3'] })).toEqual({
    made: 'a.mp3+b.mp3',
  });
});

test('several requests at once are several jobs', async () => {
  const sample = await startSample(redis);
  const ids = await Promise.all(
    Array.from({ length: 10 }, async () => {
      const response = await fetch(`${sample.url}/audio/transcode`, { method: 'POST' });
      return ((await response.json()) as { id: string }).id;
    }),
  );
  expect(new Set(ids).size).toBe(10);
  await Promise.all(ids.map((id) => ended(sample, id)));
  expect((await sample.audio.stats()).total.processed).toBe(10);
});

test('a job is shown while it is there, and is a 404 once it has completed', async () => {
  const sample = await startSample(redis);
  const { id } = await sample.audio.add('transcode', { file: 'later.mp3' }, { delay: '1h' });
  const shown = await fetch(`${sample.url}/audio/${id}`);
  expect([shown.status, await shown.json()]).toEqual([
    200,
    { id, name: 'transcode', state: 'delayed', progress: null },
  ]);
  await sample.audio.promote(id);
  await ended(sample, id);
  expect((await fetch(`${sample.url}/audio/${id}`)).status).toBe(404);
});

test('a name without a method waits for a release that has one, and the log says so', async () => {
  const sample = await startSample(redis);
  const { id } = await sample.audio.add('normalise', {});
  await until(() => sample.logs.complaints.some((text) => text.includes('normalise')));
  expect((await sample.audio.get(id))?.state).toMatch(/^(waiting|delayed|active)$/);
});
