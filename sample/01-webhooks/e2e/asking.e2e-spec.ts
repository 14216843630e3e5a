import { request } from 'node:http';
import { expect, test } from 'vitest';
import { useRedis } from '../../../test/support/redis.js';
import { startSample, startTarget } from './support/sample.js';

const redis = useRedis();
const GOOD = { url: 'https://example.com/hooks', event: 'order.paid', body: {} };

test('what cannot be delivered is refused, in words, and nothing is queued', async () => {
  const sample = await startSample(redis);
  const bad: [content: unknown, message: string][] = [
    [{ ...GOOD, url: 'example.com' }, 'url: must be an http or https address'],
    [{ ...GOOD, url: 'ftp://example.com/' }, 'url: must be an http or https address'],
    [{ ...GOOD, url: 'javascript:alert(1)' }, 'url: must be an http or https address'],
    [{ ...GOOD, url: 'https://me:secret@example.com/' }, 'without user and password'],
    [{ ...GOOD, url: `https://example.com/${'a'.repeat(2_048)}` }, 'url: Too big'],
    [{ ...GOOD, url: undefined }, 'url: '],
    [{ ...GOOD, event: '' }, 'event: must be'],
    [{ ...GOOD, event: '<b>' }, 'event: must be'],
    [{ ...GOOD, event: 'a'.repeat(101) }, 'event: must be'],
    [{ ...GOOD, body: undefined }, 'body: must be JSON'],
    [{ ...GOOD, body: 'a'.repeat(64 * 1024) }, 'body: must be JSON of at most 64 KiB'],
    [
      `{"url":"${GOOD.url}","event":"deep","body":${'['.repeat(20_000)}${']'.repeat(20_000)}}`,
      'and 64 levels',
    ],
    [{ ...GOOD, more: 1 }, 'Unrecognized key: "more"'],
    [[], ''],
    ['{"url":', ''],
  ];
  for (const [content, message] of bad) {
    const response = await sample.post('/webhooks', content);
    const answer = (await response.json()) as { message: string | string[] };
    expect([response.status, [answer.message].flat().join()]).toEqual([
      400,
      expect.stringContaining(message),
    ]);
  }
  const huge = await sample.post('/webhooks', { ...GOOD, body: 'a'.repeat(1024 * 1024) });
  expect(huge.status).toBe(413);
  const counts = await (await fetch(`${sample.url}/webhooks`)).json();
  expect(counts).toMatchObject({ waiting: 0, active: 0, delayed: 0, completed: 0, dead: 0 });
});

test('addresses that are not public are refused at the door, however they are written', async () => {
  const sample = await startSample(redis);
  const hosts = `
    127.0.0.1 127.1 0x7f000001 2130706433 0177.0.0.1 0.0.0.0 localhost LOCALHOST. a.localhost
    10.0.0.1 10.255.255.255 172.16.0.1 172.31.255.255 192.168.1.1 169.254.169.254 100.64.0.1
    [::1] [::] [fc00::1] [fdff::1] [fe80::1] [::ffff:10.0.0.1] [::ffff:7f00:1] [64:ff9b::a00:1]
    [::ffff:0:10.0.0.1] [::ffff:0:7f00:1] [5f00::1] [3fff::1] [1::1] [4000::1] [8000::1] [100::1]
  `;
  for (const host of hosts.trim().split(/\s+/)) {
    const response = await sample.post('/webhooks', { ...GOOD, url: `http://${host}:8080/` });
    expect([host, response.status, await response.json()]).toEqual([
      host,
      400,
      {
        statusCode: 400,
        code: 'ADDRESS_REFUSED',
        message: expect.stringContaining('does not lead to a public address'),
      },
    ]);
  }
});

test('an id that is not known has a typed answer', async () => {
  const sample = await startSample(redis);
  const notFound = {
    statusCode: 404,
    code: 'GODWIT_JOB_NOT_FOUND',
    message: expect.stringContaining('"nobody"'),
  };
  for (const asked of [fetch(`${sample.url}/webhooks/nobody`), sample.post('/webhooks/nobody/retry', {})]) {
    const response = await asked;
    expect([response.status, await response.json()]).toEqual([404, notFound]);
  }
  const invalid = await fetch(`${sample.url}/webhooks/%00`);
  expect([invalid.status, await invalid.json()]).toEqual([
    400,
    expect.objectContaining({ code: 'GODWIT_INVALID_JOB_ID' }),
  ]);
});

test('only a dead delivery can be tried again', async () => {
  const target = await startTarget((response) => response.end());
  const sample = await startSample(redis, [target.host]);
  const id = await sample.send(target.url);
  await sample.event(id, 'completed');

  const response = await sample.post(`/webhooks/${id}/retry`, {});
  expect([response.status, await response.json()]).toEqual([
    409,
    expect.objectContaining({ code: 'GODWIT_WRONG_STATE' }),
  ]);
});

test('the live stream goes on after the last event that was seen', async () => {
  const target = await startTarget((response) => response.end());
  const sample = await startSample(redis, [target.host]);
  const id = await sample.send(target.url);
  await sample.event(id, 'completed');

  const all = await readLive(`${sample.url}/webhooks/live?since=0`, 3);
  expect(all.map(({ data }) => [data.type, data.jobId])).toEqual([
    ['added', id],
    ['active', id],
    ['completed', id],
  ]);
  // As a browser does it: the address stays, the header says where it was.
  const rest = await readLive(`${sample.url}/webhooks/live?since=0`, 2, { 'last-event-id': all[0]!.id });
  expect(rest).toEqual(all.slice(1));

  const wrong = await fetch(`${sample.url}/webhooks/live?since=yesterday`);
  expect([wrong.status, await wrong.json()]).toEqual([
    400,
    expect.objectContaining({ code: 'GODWIT_INVALID_OPTION' }),
  ]);
});

interface LiveEvent {
  readonly id: string;
  readonly data: { readonly type: string; readonly jobId: string };
}

async function readLive(
  url: string,
  count: number,
  headers: Record<string, string> = {},
): Promise<LiveEvent[]> {
  const response = await fetch(url, { headers, signal: AbortSignal.timeout(10_000) });
  expect(response.headers.get('content-type')).toBe('text/event-stream');
  let text = '';
  for await (const chunk of response.body!.pipeThrough(new TextDecoderStream())) {
    text += chunk;
    const events = [...text.matchAll(/id: (\d+)\ndata: (.*)\n\n/g)];
    if (events.length >= count) return events.map(([, id, data]) => ({ id: id!, data: JSON.parse(data!) }));
  }
  throw new Error(`the stream ended: ${text}`);
}

test('only requests for names of this server are answered, so that no website can rebind its name to it', async () => {
  const sample = await startSample(redis);
  const { port } = new URL(sample.url);
  const statusFor = (host: string, path: string) =>
    new Promise<number>((resolve, reject) => {
      request({ port, path, headers: { host }, host: '127.0.0.1' }, (response) => {
        response.resume();
        resolve(response.statusCode!);
      })
        .on('error', reject)
        .end();
    });
  for (const host of ['localhost', `localhost:${port}`, `127.0.0.1:${port}`, `[::1]:${port}`, 'LOCALHOST']) {
    expect([host, await statusFor(host, '/'), await statusFor(host, '/webhooks')]).toEqual([host, 200, 200]);
  }
  for (const host of [`evil.example:${port}`, 'localhost.evil.example', '127.0.0.1.evil.example']) {
    expect([host, await statusFor(host, '/'), await statusFor(host, '/webhooks')]).toEqual([host, 421, 421]);
  }
});
