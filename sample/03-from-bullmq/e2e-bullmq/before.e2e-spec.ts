import { expect, test } from 'vitest';
import { bootApp } from '../../../test/support/app.js';
import { atEnd } from '../../../test/support/cleanup.js';
import { Logs } from '../../../test/support/queue-app.js';
import { useRedis } from '../../../test/support/redis.js';
import { useServer } from '../../../test/support/server.js';
import { until } from '../../../test/support/wait.js';
import { AppModule } from '../before/src/app.module.js';
import { oldQueue } from './support/rig.js';

const server = useServer();
useRedis({ server, rights: 'all' });

test('the application as it was: a job is added over HTTP and runs', async () => {
  const environment = { ...process.env };
  process.env.REDIS_URL = server.url;
  atEnd(() => {
    process.env = environment;
  });
  oldQueue(6, server.url);
  const logs = new Logs();
  const { url } = await bootApp({ imports: [AppModule], http: true, logger: logs });
  const response = await fetch(`${url}/audio/transcode`, { method: 'POST' });
  expect(response.status).toBe(201);
  const { id } = (await response.json()) as { id: string };
  await until(() => logs.lines.some(({ text }) => text === `Job ${id} completed`), { timeout: 15_000 });
  expect(logs.lines.map(({ text }) => text)).toEqual(
    expect.arrayContaining(['Start transcoding audio.mp3...', 'Transcoding completed']),
  );
  expect((await fetch(`${url}/audio/${id}`)).status).toBe(404);
});
