import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { QUEUE_ENGINE } from '#lib/decorators/metadata.js';
import type { QueueEngine } from '#lib/contract/engine.js';
import { QueueInspector } from '#lib/inspect/queue-inspector.js';
import { aclRules, commandsOf, type AclOptions } from '../tools/acl.mjs';
import { refusals } from './support/acl-user.js';
import { bootQueue, PATIENT } from './support/queue-app.js';
import { useRedis } from './support/redis.js';
import { useServer } from './support/server.js';
import { ROOT } from './support/sources.js';
import { until } from './support/wait.js';

const lineOf = (options: AclOptions) =>
  `ACL SETUSER ${options.prefix} reset on >secret ${aclRules(options).join(' ')}`;
const print = (...args: string[]) =>
  execFileSync(process.execPath, [join(ROOT, 'tools/acl.mjs'), ...args], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
  }).trim();

describe('the line that makes the minimal user', () => {
  it('is in the documentation exactly as generated from the scripts', () => {
    const page = readFileSync(join(ROOT, 'docs/operating/redis.md'), 'utf8');
    const lines = page.split('\n').filter((line) => line.startsWith('ACL SETUSER'));
    expect(lines, 'docs/operating/redis.md has the line of: node tools/acl.mjs --prefix shop').toEqual([
      lineOf({ prefix: 'shop' }),
    ]);
  });

  it('is what the tool prints', () => {
    expect(print('--prefix', 'shop')).toBe(lineOf({ prefix: 'shop' }));
    const options = { prefix: 'a.b-C', role: 'producer', cluster: true, redis: '8.2' } as const;
    const flags = '--prefix a.b-C --role producer --cluster --redis 8.2'.split(' ');
    expect(print(...flags)).toBe(lineOf(options));
    expect(() => print('--role', 'reader')).toThrow('--role is both or producer');
  });

  it('allows neither administration nor keys of others', () => {
    const rules = aclRules({ prefix: 'shop', cluster: true, redis: '8.0' });
    expect(
      rules.filter(
        (rule) =>
          !/^(~\{shop:\*|~\{shop\}:(bell:\*|processes\*|queues|alerts|actions|bulkActs)|\+[a-z|]+)$/.test(
            rule,
          ),
      ),
    ).toEqual([]);
    for (const command of ['keys', 'config', 'flushall', 'debug', 'script', 'function', 'acl'])
      expect(rules.filter((rule) => rule.startsWith(`+${command}`))).toEqual([]);
  });

  it('cannot overlook a command', () => {
    expect(commandsOf("redis.call('HGET', k) redis.pcall('XINFO', 'STREAM', k)")).toEqual([
      'hget',
      'xinfo|stream',
    ]);
    expect(() => commandsOf('redis.call(command, key)')).toThrow('does not name in place');
    expect(() => commandsOf('local call = redis.call')).toThrow('does not name in place');
  });
});

describe('on a server of its own', () => {
  const server = useServer();
  const redis = useRedis({ server });

  it('has no command for a connection that is never sent', async () => {
    const { queue, ended, close } = await bootQueue(redis, {
      root: { lease: { duration: '500ms' } },
      handlers: { '*': () => 1 },
      concurrency: 1,
    });
    const { id } = await queue.add('one', null, { retention: '1m' });
    await ended(id);
    await queue.get(id);
    const many = Array.from({ length: 250 }, () => ({ name: 'one', data: null }));
    for (const bulk of [many, many]) await queue.addBulk(bulk);
    await queue.repair();
    await queue.jobs({ state: 'waiting', offset: 1 });
    await queue['engine'].admin.memoryBytes('work');
    const unconfirmed = queue.add('one', null, { durability: { timeout: 1 } });
    const stats = () => redis.admin.info('commandstats');
    const isSent = async (command: string) => (await stats()).includes(`cmdstat_${command}:`);
    await until(() => isSent('exists'), { ...PATIENT, what: 'it asks after a while without a bell' });
    await until(() => isSent('wait'), PATIENT);
    await unconfirmed.catch(() => undefined);
    await close();
    const inScripts = new Set(commandsOf(await scriptTexts()));
    const forLinks = aclRules({ prefix: 'x' }).filter(
      (rule) => rule.startsWith('+') && !inScripts.has(rule.slice(1)),
    );
    const sent = await stats();
    expect(forLinks.filter((rule) => !sent.includes(`cmdstat_${rule.slice(1)}:`))).toEqual([]);
  });

  it('lets a producer do everything except take jobs', async () => {
    const { prefix, admin } = redis;
    const rules = aclRules({ prefix, role: 'producer' });
    await admin.call('ACL', 'SETUSER', 'producer', 'reset', 'on', '>secret', ...rules);
    const worker = await bootQueue(redis, { handlers: { '*': () => 42 }, watch: false });
    const { queue, get, close } = await bootQueue(redis, {
      root: { connection: `redis://producer:secret@127.0.0.1:${server.port}`, role: 'producer' },
    });
    expect(await queue.addAndWait('sum', null)).toBe(42);
    await queue.addBulk([
      { name: 'later', data: null, options: { id: 'a', delay: '1h', priority: 3 } },
      { name: 'later', data: null, options: { id: 'b', delay: '1h' } },
    ]);
    expect(await queue.get('a')).toMatchObject({ state: 'delayed' });
    await queue.promote('b');
    await queue.remove('a');
    await queue.pause();
    await queue.resume();
    await queue.dead.retry({});
    await queue.dead.list();
    await queue.remove({ state: 'dead' });
    const inspector = get(QueueInspector);
    expect((await inspector.queues()).map(({ name }) => name)).toEqual(['work']);
    await until(async () => (await inspector.workers()).length === 1, PATIENT);
    await worker.close();
    await queue.obliterate();
    await queue.add('one', null);
    expect(await refusals(admin, 'producer')).toEqual([]);
    const call = { worker: 'w', seq: 1, leaseMs: 1_000, want: 1, maySuspect: true, settled: [] };
    const claim = get<QueueEngine>(QUEUE_ENGINE).exchange('work', call);
    await expect(claim).rejects.toMatchObject({ code: 'GODWIT_REDIS_REFUSED', applied: 'unknown' });
    await redis.flush();
    await close();
  });
});

async function scriptTexts(): Promise<string> {
  const { allScripts } = await import('#lib/engine/script.js');
  return allScripts()
    .map(({ text }) => text)
    .join('\n');
}
