import { hostname } from 'node:os';
import { describe, expect, it } from 'vitest';
import { spawnApp } from '../faults/support/spawn.js';
import { bootQueue, PATIENT } from '../support/queue-app.js';
import { useRedis } from '../support/redis.js';
import { until } from '../support/wait.js';
import { godwit, runOn } from './support.js';

const redis = useRedis();

const run = (...words: string[]) => runOn(redis, ...words);

const worker = () =>
  spawnApp({
    root: { connection: redis.url, prefix: redis.prefix, lease: { duration: '1s' } },
    concurrency: 5,
  });

/** The state of each worker process, by its pid. */
async function states(): Promise<Record<string, string>> {
  const { out } = await run('workers', '--json');
  const workers = JSON.parse(out) as { pid: number; state: string }[];
  return Object.fromEntries(workers.map(({ pid, state }) => [String(pid), state]));
}

const become = (pid: number, state: string) =>
  until(async () => (await states())[pid] === state, { ...PATIENT, what: `process ${pid} is ${state}` });

describe('orders to one of two processes', () => {
  it('make it quiet or pause it, and the other one does all the work', async () => {
    const { queue } = await bootQueue(redis, { watch: false });
    const [one, two] = await Promise.all([worker(), worker()]);
    await until(async () => Object.keys(await states()).length === 2, PATIENT);

    const quiet = await run('quiet', '--process', `${hostname()}:${one.pid}`, '--yes');
    expect(quiet).toEqual({
      code: 0,
      out: `${hostname()}:${one.pid} quiet all queues: order stored\n`,
      err: '',
    });
    await become(one.pid, 'quiet');
    await queue.addBulk(Array.from({ length: 20 }, () => ({ name: 'quick', data: null })));
    await two.take(20, 'started');
    expect(one.all('started')).toEqual([]);

    expect((await run('pause', 'work', '--process', `${hostname()}:${two.pid}`)).code).toBe(0);
    await become(two.pid, 'paused');
    const { id } = await queue.add('quick', null);
    expect((await run('resume', 'work', '--process', `${hostname()}:${two.pid}`)).code).toBe(0);
    await two.first('started', (said) => said.id === id);
    // A resume does not end quiet.
    expect((await run('resume', '--host', hostname())).code).toBe(0);
    await become(two.pid, 'running');
    expect((await states())[one.pid]).toBe('quiet');

    for (const { pid } of [one, two]) process.kill(pid, 'SIGTERM');
    expect((await Promise.all([one.exited, two.exited])).map(({ code, signal }) => code ?? signal)).toEqual([
      'SIGTERM',
      'SIGTERM',
    ]);
  });

  it('can be given by a user of the system that has no name, as in many containers', async () => {
    const nameless =
      'data:text/javascript,import os from "node:os"; os.userInfo = () => { throw new Error("no name") };';
    const command = godwit(
      ['pause', '-u', redis.url, '--prefix', redis.prefix, '--process', 'nobody:1'],
      undefined,
      ['--import', nameless],
    );
    expect(await command.result()).toMatchObject({ code: 3, err: expect.stringContaining('nobody:1') });
  });

  it('are refused without a process that fits, without a choice, and without consent', async () => {
    const nobody = await run('pause', '--process', 'nobody:1');
    expect([nobody.code, nobody.err]).toEqual([3, expect.stringContaining("process 'nobody:1'")]);
    const all = await run('quiet', '--yes');
    expect([all.code, all.err]).toEqual([2, expect.stringContaining('name a queue, --process or --host')]);
    const unasked = await run('quiet', '--process', 'nobody:1');
    expect(unasked.code).not.toBe(0);
    expect(unasked.err).toContain('--yes');
  });
});
