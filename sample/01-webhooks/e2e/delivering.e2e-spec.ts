import dns from 'node:dns';
import { createHmac } from 'node:crypto';
import { expect, test, vi } from 'vitest';
import { atEnd } from '../../../test/support/cleanup.js';
import { useRedis } from '../../../test/support/redis.js';
import { until } from '../../../test/support/wait.js';
import { SECRET, startSample, startTarget } from './support/sample.js';

const redis = useRedis();

test('a webhook is accepted, delivered with a signature, and can be asked for', async () => {
  const target = await startTarget((response) => response.end());
  const sample = await startSample(redis, [target.host]);

  const response = await sample.post('/webhooks', {
    url: `${target.url}in?a=1`,
    event: 'order.paid',
    body: { total: '48.90' },
  });
  const { id } = (await response.json()) as { id: string };
  expect(response.status).toBe(202);
  expect(response.headers.get('location')).toBe(`/webhooks/${id}`);

  await sample.event(id, 'completed');
  const [request] = target.requests;
  expect(request!.path).toBe('/in?a=1');
  expect(request!.headers['content-type']).toBe('application/json');
  expect(JSON.parse(request!.body)).toEqual({
    type: 'order.paid',
    timestamp: expect.stringMatching(/^\d{4}-\d\d-\d\dT/),
    data: { total: '48.90' },
  });
  expect(request!.headers['webhook-id']).toBe(id);
  const signed = [id, request!.headers['webhook-timestamp'], request!.body].join('.');
  const hmac = createHmac('sha256', Buffer.from(SECRET.slice('whsec_'.length), 'base64')).update(signed);
  expect(request!.headers['webhook-signature']).toBe(`v1,${hmac.digest('base64')}`);

  expect(await sample.show(id)).toMatchObject({
    id,
    state: 'completed',
    event: 'order.paid',
    body: { total: '48.90' },
    attempt: 1,
    attempts: 5,
    lastError: null,
    dueAt: null,
    status: 200,
  });
  const counts = await (await fetch(`${sample.url}/webhooks`)).json();
  expect(counts).toMatchObject({ waiting: 0, active: 0, delayed: 0, completed: 1, dead: 0 });
});

test('an answer of 500 is tried again until it works, always with the same id', async () => {
  const target = await startTarget((response, count) =>
    response.writeHead(count < 3 ? 500 : 200).end('not yet'),
  );
  const sample = await startSample(redis, [target.host]);
  const id = await sample.send(target.url);

  expect(await sample.event(id, 'retrying')).toMatchObject({
    attempt: 1,
    error: { message: '500 Internal Server Error: not yet' },
  });
  expect(await sample.event(id, 'completed', 'dead')).toMatchObject({ type: 'completed', attempt: 3 });
  expect(target.requests.map(({ headers }) => headers['webhook-id'])).toEqual([id, id, id]);
});

test('five failures are enough: the delivery is dead, and a person can have it tried again', async () => {
  let healed = false;
  const target = await startTarget((response) => response.writeHead(healed ? 204 : 503).end());
  const sample = await startSample(redis, [target.host]);
  const id = await sample.send(target.url);

  const dead = await sample.event(id, 'dead');
  expect(dead).toMatchObject({ attempt: 5, reason: 'retries-exhausted' });
  expect(target.requests).toHaveLength(5);
  expect(await sample.show(id)).toMatchObject({
    state: 'dead',
    attempt: 5,
    lastError: { attempt: 5, message: '503 Service Unavailable', reason: 'retries-exhausted' },
  });

  healed = true;
  const response = await sample.post(`/webhooks/${id}/retry`, {});
  expect(response.status).toBe(202);
  await sample.event(id, 'completed');
  expect(await sample.show(id)).toMatchObject({ state: 'completed', status: 204 });
});

test.each([
  [410, 'Gone'],
  [401, 'Unauthorized'],
])('an answer of %i ends it at once', async (status, reason) => {
  const target = await startTarget((response) => response.writeHead(status).end());
  const sample = await startSample(redis, [target.host]);
  const id = await sample.send(target.url);

  expect(await sample.event(id, 'dead', 'retrying', 'completed')).toMatchObject({
    type: 'dead',
    attempt: 1,
    reason: 'unrecoverable',
    error: { message: `${status} ${reason}` },
  });
});

test.each([408, 425, 429])('an answer of %i asks for another try', async (status) => {
  const target = await startTarget((response, count) => response.writeHead(count === 1 ? status : 200).end());
  const sample = await startSample(redis, [target.host]);
  const id = await sample.send(target.url);

  expect(await sample.event(id, 'completed', 'dead')).toMatchObject({ type: 'completed', attempt: 2 });
});

test('a redirect is not followed', async () => {
  const elsewhere = await startTarget((response) => response.end());
  const target = await startTarget((response) => response.writeHead(307, { location: elsewhere.url }).end());
  const sample = await startSample(redis, [target.host, elsewhere.host]);
  const id = await sample.send(target.url);

  expect(await sample.event(id, 'dead', 'completed', 'retrying')).toMatchObject({
    type: 'dead',
    reason: 'unrecoverable',
  });
  expect(elsewhere.requests).toEqual([]);
});

test('a refused connection is tried again', async () => {
  const target = await startTarget((response) => response.end());
  target.close();
  const sample = await startSample(redis, [target.host]);
  const id = await sample.send(target.url);

  const event = await sample.event(id, 'retrying', 'dead', 'completed');
  expect(event).toMatchObject({
    type: 'retrying',
    attempt: 1,
    error: { message: expect.stringContaining('ECONNREFUSED') },
  });
  const shown = await sample.show(id);
  expect(shown).toMatchObject({ state: 'delayed', lastError: { attempt: 1 } });
  expect(new Date(shown.dueAt!).getTime()).toBeGreaterThan(new Date(shown.createdAt!).getTime());
});

test('a receiver that never answers, or never ends its answer, does not hold the delivery', async () => {
  const silent = await startTarget(() => {});
  const endless = await startTarget((response) => response.writeHead(200).write('and '));
  const sample = await startSample(redis, [silent.host, endless.host]);
  const ids = [await sample.send(silent.url), await sample.send(endless.url)];

  for (const id of ids) {
    expect(await sample.event(id, 'retrying', 'dead', 'completed')).toMatchObject({
      type: 'retrying',
      error: { message: 'no answer within 2 s' },
    });
  }
});

test('a name that leads to a private address is not connected to', async () => {
  const target = await startTarget((response) => response.end());
  const sample = await startSample(redis);
  resolveTo('rebound.example', ['127.0.0.1', '::1', '10.1.2.3']);
  const id = await sample.send(target.url.replace('127.0.0.1', 'rebound.example'));

  expect(await sample.event(id, 'dead', 'completed', 'retrying')).toMatchObject({
    type: 'dead',
    reason: 'unrecoverable',
    error: {
      message: expect.stringMatching(
        /^rebound\.example does not lead to a public address, and WEBHOOK_ALLOW does not name it$/,
      ),
    },
  });
  expect(target.requests).toEqual([]);
});

test('a name is connected to at the address that was judged', async () => {
  const target = await startTarget((response) => response.end());
  const sample = await startSample(redis, [target.host]);
  resolveTo('known.example', ['10.1.2.3', '127.0.0.1']);
  const id = await sample.send(target.url.replace('127.0.0.1', 'known.example'));

  await sample.event(id, 'completed');
  expect(target.requests[0]!.headers.host).toMatch(/^known\.example:/);
});

test('the receiver of the sample checks the signature', async () => {
  const sample = await startSample(redis);
  const examples = (await (await fetch(`${sample.url}/examples`)).json()) as {
    title: string;
    webhook: { url: string };
  }[];
  const { url } = examples.find(({ title }) => title === 'Works')!.webhook;

  expect((await fetch(url, { method: 'POST', body: '{}' })).status).toBe(401);
  const id = await sample.send(url);
  expect(await sample.event(id, 'completed', 'dead', 'retrying')).toMatchObject({ type: 'completed' });
});

test('deliveries that are under way end before the sample stops, and the rest is kept', async () => {
  const held: (() => void)[] = [];
  const target = await startTarget((response) => held.push(() => response.end()));
  const first = await startSample(redis, [target.host]);
  const id = await first.send(target.url);
  await until(() => held.length === 1);

  const stopped = first.stop();
  held[0]!();
  await stopped;
  const second = await startSample(redis, [target.host]);
  expect(await second.show(id)).toMatchObject({ state: 'completed', attempt: 1 });
  expect(target.requests).toHaveLength(1);
});

function resolveTo(name: string, addresses: string[]): void {
  const original = dns.lookup;
  const found = addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 }));
  const spy = vi
    .spyOn(dns, 'lookup')
    .mockImplementation(((host: string, ...rest: [object, (...told: unknown[]) => void]) =>
      host === name
        ? rest[1](null, found)
        : original(host, ...(rest as [never, never]))) as typeof dns.lookup);
  atEnd(() => spy.mockRestore());
}
