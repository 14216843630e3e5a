import { request } from 'node:http';
import { describe, expect, it } from 'vitest';
import { bootQueue } from '../support/queue-app.js';
import { useRedis } from '../support/redis.js';
import { godwit, runHere } from './support.js';

const redis = useRedis();
const PASSWORD = 'correct horse';
const OWN = { 'content-type': 'application/json', 'sec-fetch-site': 'same-origin' };

async function serve(...args: string[]) {
  const command = godwit(['serve', '-u', redis.url, '--prefix', redis.prefix, '--port', '0', ...args]);
  return { command, url: await command.said(/http:\S+/) };
}

/** The status for a value of the header `Host`, which `fetch` does not let us set. */
function statusFor(url: string, host: string): Promise<number> {
  return new Promise((resolve, reject) => {
    request(url, { headers: { host } }, (response) => {
      response.resume();
      resolve(response.statusCode!);
    })
      .on('error', reject)
      .end();
  });
}

const basic = (login: string) => ({ authorization: `Basic ${Buffer.from(login).toString('base64')}` });

describe('the dashboard without an application', () => {
  it('serves pages, files and calls for all queues of the prefix, and acts on them', async () => {
    const { queue } = await bootQueue(redis, { watch: false });
    await queue.add('x', { a: 1 }, { id: 'a' });
    const { command, url } = await serve();
    expect(url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/queues\/$/);
    const page = await fetch(url.replace('/queues/', '/'));
    expect([page.url, page.status]).toEqual([url, 200]);
    const html = await page.text();
    for (const file of html.match(/assets\/[\w.]+/g)!)
      expect([file, (await fetch(`${url}${file}`)).status]).toEqual([file, 200]);
    const me = await (await fetch(`${url}api/v1/me`)).json();
    expect(me).toMatchObject({ queues: ['work'], readOnly: false });
    expect(await (await fetch(`${url}api/v1/queues/work/jobs`)).json()).toMatchObject({
      jobs: [{ id: 'a' }],
    });
    const act = (headers: Record<string, string>) =>
      fetch(`${url}api/v1/queues/work/jobs/a/cancel`, { method: 'POST', headers, body: '{}' });
    expect((await act({ 'content-type': 'application/json' })).status).toBe(403);
    expect((await act(OWN)).status).toBe(200);
    expect(await queue.get('a')).toBeNull();
    expect((await fetch(`${url}api/v1/queues/none`)).status).toBe(404);
    // An open stream does not keep it from ending.
    const live = await fetch(`${url}api/v1/events`);
    expect(live.status).toBe(200);
    expect((await command.end('SIGTERM')).code).toBe(0);
    await live.text().catch(() => undefined);
  });

  it('answers only for this machine without a login: no name of another site, no other address', async () => {
    await bootQueue(redis, { watch: false });
    const { url } = await serve();
    const { port } = new URL(url);
    expect(await statusFor(url, `localhost:${port}`)).toBe(200);
    expect(await statusFor(url, `[::1]:${port}`)).toBe(200);
    expect(await statusFor(url, `evil.example:${port}`)).toBe(403);
    expect(await statusFor(`${url}api/v1/me`, 'localhost.evil.example')).toBe(403);
    const open = await runHere(['serve', '-u', redis.url, '--host', '0.0.0.0']);
    expect([open.code, open.err]).toEqual([2, expect.stringMatching(/needs --user/)]);
    const long = await runHere(['serve', '-u', redis.url, '--title', 'x'.repeat(61)]);
    expect([long.code, long.err]).toEqual([2, expect.stringMatching(/--title must be a string of 1 to 60/)]);
  });

  it('asks for the name and the password of --user, everywhere', async () => {
    const { queue } = await bootQueue(redis, { watch: false });
    await queue.add('x', null);
    const args = ['--user', 'ada', '--host', '0.0.0.0', '--read-only', '--json'];
    const without = await runHere(['serve', '-u', redis.url, ...args]);
    expect([without.code, without.err]).toEqual([2, expect.stringMatching(/\$GODWIT_PASSWORD/)]);
    process.env['GODWIT_PASSWORD'] = PASSWORD;
    const { command } = await serve(...args).finally(() => delete process.env['GODWIT_PASSWORD']);
    const url = (JSON.parse(command.out) as { url: string }).url.replace('0.0.0.0', '127.0.0.1');
    for (const path of ['', 'api/v1/me', 'api/v1/events', 'assets/app.js']) {
      const answer = await fetch(`${url}${path}`);
      expect([path, answer.status, answer.headers.get('www-authenticate')]).toEqual([
        path,
        401,
        expect.stringMatching(/^Basic realm/),
      ]);
    }
    for (const login of ['ada:wrong', `eve:${PASSWORD}`, PASSWORD, ':'])
      expect([login, (await fetch(`${url}api/v1/me`, { headers: basic(login) })).status]).toEqual([
        login,
        401,
      ]);
    // The name of the scheme is case-insensitive (RFC 9110 §11.1).
    const { authorization } = basic(`ada:${PASSWORD}`);
    const lower = { authorization: authorization.replace('Basic', 'basic') };
    expect((await fetch(`${url}api/v1/me`, { headers: lower })).status).toBe(200);
    const me = await fetch(`${url}api/v1/me`, { headers: { authorization } });
    expect(await me.json()).toMatchObject({
      actor: 'ada',
      readOnly: true,
      rights: ['read', 'read-data', 'read-actions'],
    });
    const pause = { method: 'POST', headers: { ...OWN, ...basic(`ada:${PASSWORD}`) }, body: '{}' };
    expect((await fetch(`${url}api/v1/queues/work/pause`, pause)).status).toBe(403);
    // Its output contains the password nowhere.
    expect(command.out + command.err).not.toContain(PASSWORD);
  });

  it('starts while Redis is away, and says so', async () => {
    const command = godwit(['serve', '-u', 'redis://127.0.0.1:1', '--port', '0']);
    const url = await command.said(/http:\S+/);
    expect((await fetch(url)).status).toBe(200);
    const answer = await fetch(`${url}api/v1/overview`);
    expect(answer.status).toBe(503);
    expect(await answer.json()).toMatchObject({ error: { code: 'GODWIT_REDIS_UNAVAILABLE' } });
    await command.said(/no connection to Redis in time \(.*127\.0\.0\.1:1\); the pages say so/);
  });
});
