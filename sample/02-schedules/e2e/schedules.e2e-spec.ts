import { expect, test } from 'vitest';
import { useRedis } from '../../../test/support/redis.js';
import { startSample, type Sample } from './support/sample.js';

const redis = useRedis();

/** The end of a job of this schedule, or of this job. */
const ended = ({ events }: Sample, of: string) =>
  events.first(
    (event) => event.type === 'completed' && (event.jobId === of || event.jobId.startsWith(`${of}@`)),
    { timeout: 15_000 },
  );

test('what the decorators declare is there, with rule, zone and next time', async () => {
  const sample = await startSample(redis);
  const list = await sample.list();
  expect(list.map(({ id, rule, zone, more }) => [id, rule, zone, more])).toEqual([
    ['ask-suppliers', 'every 5s', null, ['up to 2s later']],
    ['fetch-rates', '*/15 * * * * *', 'UTC', ['UTC']],
    ['import-stock', 'every 10s', null, ['never two at once']],
    ['report-berlin', '0 7 * * MON-FRI', 'Europe/Berlin', ['Europe/Berlin']],
    ['report-new-york', '0 7 * * MON-FRI', 'America/New_York', ['America/New_York']],
  ]);
  for (const { next, paused } of list) {
    expect(paused).toBe(false);
    expect(Date.parse(next!)).toBeGreaterThan(Date.now() - 60_000);
  }
  const local = (id: string, zone: string) =>
    new Date(list.find((one) => one.id === id)!.next!).toLocaleTimeString('en-GB', { timeZone: zone });
  expect(local('report-berlin', 'Europe/Berlin')).toBe('07:00:00');
  expect(local('report-new-york', 'America/New_York')).toBe('07:00:00');
});

test('the next times of one, and no answer to nonsense', async () => {
  const sample = await startSample(redis);
  const ask = (path: string) => fetch(`${sample.url}/schedules/${path}`);
  const next = (await (await ask('report-berlin/next?count=6')).json()) as string[];
  expect(next).toHaveLength(6);
  expect(next.map((at) => new Date(at).getUTCDay())).not.toContain(0);
  for (const path of ['report-berlin/next?count=0', 'report-berlin/next?count=many']) {
    const refused = await ask(path);
    expect([refused.status, await refused.json()]).toEqual([
      400,
      expect.objectContaining({ code: 'GODWIT_INVALID_OPTION' }),
    ]);
  }
});

test('one is run now, with the data that the decorator says', async () => {
  const sample = await startSample(redis);
  const response = await sample.post('/schedules/report-new-york/run');
  expect(response.status).toBe(202);
  const { jobId } = (await response.json()) as { jobId: string };
  const job = await sample.chores.get(jobId);
  expect(job?.data).toEqual({ office: 'New York' });
  await ended(sample, jobId);
  // It was no occurrence.
  expect((await sample.show('report-new-york')).fired).toBe(0);
});

test('one is paused and resumed, and stays paused over a restart', async () => {
  const first = await startSample(redis);
  const pause = await first.post('/schedules/ask-suppliers/pause');
  expect([pause.status, await pause.json()]).toEqual([200, { changed: true }]);
  expect(await (await first.post('/schedules/ask-suppliers/pause')).json()).toEqual({ changed: false });
  expect(await first.show('ask-suppliers')).toMatchObject({ paused: true, next: null });
  await first.stop();

  const second = await startSample(redis);
  expect(await second.show('ask-suppliers')).toMatchObject({ paused: true, next: null });
  expect(await (await second.post('/schedules/ask-suppliers/resume')).json()).toEqual({ changed: true });
  expect((await second.show('ask-suppliers')).next).not.toBeNull();
  await ended(second, 'ask-suppliers');
});

test('one that is not there has a typed answer', async () => {
  const sample = await startSample(redis);
  for (const act of ['pause', 'resume', 'run']) {
    const response = await sample.post(`/schedules/nobody/${act}`);
    expect([response.status, await response.json()]).toEqual([
      404,
      {
        statusCode: 404,
        code: 'GODWIT_SCHEDULE_NOT_FOUND',
        message: expect.stringContaining('"nobody"'),
      },
    ]);
  }
  const invalid = await sample.post('/schedules/%00/run');
  expect([invalid.status, await invalid.json()]).toEqual([
    400,
    expect.objectContaining({ code: 'GODWIT_INVALID_OPTION' }),
  ]);
});

test('the live stream says of each event which schedule it belongs to', async () => {
  const sample = await startSample(redis);
  const { jobId } = (await (await sample.post('/schedules/report-berlin/run')).json()) as { jobId: string };
  await ended(sample, jobId);
  await sample.chores.add('report', { office: 'Berlin' }, { id: 'by-hand' });
  const seen = await readLive(`${sample.url}/schedules/live?since=0`, (events) =>
    events.some((event) => event.jobId === 'by-hand'),
  );
  const schedules = (id: string) =>
    new Set(seen.filter((event) => event.jobId === id).map(({ schedule }) => schedule));
  expect(schedules(jobId)).toEqual(new Set(['report-berlin']));
  expect(schedules('by-hand')).toEqual(new Set([null]));
});

interface LiveEvent {
  readonly jobId?: string;
  readonly schedule: string | null;
}

async function readLive(url: string, isEnough: (events: LiveEvent[]) => boolean): Promise<LiveEvent[]> {
  const response = await fetch(url, { signal: AbortSignal.timeout(15_000) });
  expect(response.headers.get('content-type')).toBe('text/event-stream');
  let text = '';
  for await (const chunk of response.body!.pipeThrough(new TextDecoderStream())) {
    text += chunk;
    const events = [...text.matchAll(/id: \d+\ndata: (.*)\n\n/g)].map(
      ([, data]) => JSON.parse(data!) as LiveEvent,
    );
    if (isEnough(events)) return events;
  }
  throw new Error(`the stream ended: ${text}`);
}
