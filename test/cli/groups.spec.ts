import { describe, expect, it } from 'vitest';
import { UnrecoverableError } from '#lib/errors.js';
import type { QueueAction } from '#lib/index.js';
import { bootQueue, PATIENT } from '../support/queue-app.js';
import { gated } from '../support/queue-states.js';
import { useRedis } from '../support/redis.js';
import { until } from '../support/wait.js';
import { runOn } from './support.js';

const redis = useRedis();
const run = (...words: string[]) => runOn(redis, ...words);

/** A queue with groups that a dead job stops, and one job that waits in each. */
async function withStopped(groups: readonly string[]) {
  const app = await bootQueue(redis, {
    watch: false,
    handlers: {
      bad: () => {
        throw new UnrecoverableError('no');
      },
    },
    queue: { groups: { order: 'strict', onDead: 'block' } },
  });
  for (const id of ['1', '2'])
    await app.queue.addBulk(
      groups.map((group) => ({ name: 'bad', data: null, options: { group, id: `${group}-${id}` } })),
    );
  await until(async () => (await app.queue.counts()).dead === groups.length, PATIENT);
  return app;
}

describe('godwit groups', () => {
  it('calls a group busy that runs as many jobs as it may', async () => {
    const { handlers } = gated();
    const { queue } = await bootQueue(redis, { handlers, queue: { groups: { concurrency: 1 } } });
    for (const group of ['acme', 'acme', 'other']) await queue.add('active', null, { group });
    await until(async () => (await queue.counts()).active === 2, PATIENT);
    expect((await run('groups', 'work')).out).toMatch(/^group acme .* 1\/1 +1 +busy$/m);
  });

  it('changes the limits of one group, shows it, and clears them, with the actor on record', async () => {
    const { queue } = await bootQueue(redis, { watch: false, queue: { groups: { concurrency: 5 } } });
    await queue.add('mail', null, { group: 'acme' });
    const show = async () => JSON.parse((await run('groups', 'work', 'show', 'acme', '--json')).out);
    const change = ['--concurrency', '2', '--rate', '5/1m', '--max-size', '9', '--weight', '1.5'];
    expect(await run('groups', 'work', 'set', 'acme', ...change)).toMatchObject({ code: 0, out: 'done\n' });
    expect(await show()).toMatchObject({ concurrency: 2, rate: { max: 5 }, maxSize: 9, weight: 1.5 });
    await run(
      'groups',
      'work',
      'set',
      'acme',
      '--concurrency',
      'none',
      '--rate',
      'none',
      '--max-size',
      'none',
    );
    expect(await show()).toMatchObject({ concurrency: null, rate: null, maxSize: null, waiting: 1 });
    await run('groups', 'work', 'pause', 'acme');
    const { out } = await run('groups', 'work', 'show', 'acme');
    expect(out).toMatch(/^group acme .* paused\nno job of it starts: the group 'acme' is paused$/m);
    expect((await run('groups', 'work', 'clear', 'acme')).out).toBe('cleared\n');
    expect(await show()).toMatchObject({ concurrency: 5, weight: 1, paused: false, isLive: false });
    const { actions } = JSON.parse((await run('actions', 'work', '--json')).out);
    expect(actions.map(({ action, target }: any) => [action, target])).toEqual([
      ['group.clear', 'acme'],
      ['group.pause', 'acme'],
      ['group.set', 'acme {"concurrency":null,"maxSize":null,"rate":null}'],
      ['group.set', 'acme {"concurrency":2,"maxSize":9,"weight":1.5,"rate":{"max":5,"per":60000}}'],
    ]);
    expect(actions[0].actor).toMatch(/^cli:/);
  });

  it('refuses a change without a value, and options of another act', async () => {
    await bootQueue(redis, { watch: false, queue: { groups: { order: 'strict' } } }).then(({ queue }) =>
      queue.add('mail', null, { group: 'acme' }),
    );
    const bad = [
      ['set', 'acme'],
      ['set', '--rate', '1/s'],
      ['set', 'acme', '--weight', 'heavy'],
      ['set', 'acme', '--weight', '0'],
      // Strict order.
      ['set', 'acme', '--concurrency', '3'],
      ['pause', 'acme', '--concurrency', '3'],
      ['--rate', '1/s'],
      ['list', 'acme'],
    ];
    for (const words of bad)
      expect([words, (await run('groups', 'work', ...words)).code]).toEqual([words, 2]);
  });

  it('selects the jobs of one group for cancel, promote and clean, and records it', async () => {
    const { queue } = await bootQueue(redis, { watch: false, queue: { groups: {} } });
    const jobs = ['acme', 'other'].flatMap((group) => [
      { name: 'mail', data: null, options: { group, id: `${group}-waits` } },
      { name: 'mail', data: null, options: { group, id: `${group}-due`, delay: '1h' } },
    ]);
    await queue.addBulk([...jobs, { name: 'mail', data: null, options: { id: 'alone' } }]);
    const idsOf = async (state: 'waiting' | 'delayed' | 'cancelled') =>
      (await queue.jobs({ state })).jobs.map(({ id }) => id).toSorted();
    const act = async (...words: string[]) =>
      expect([words, (await run(...words, '--group', 'acme', '--yes')).code]).toEqual([words, 0]);
    await act('promote', 'work');
    expect(await idsOf('delayed')).toEqual(['other-due']);
    await act('clean', 'work', 'waiting', '--limit', '1');
    expect((await idsOf('waiting')).filter((id) => id.startsWith('acme'))).toHaveLength(1);
    await act('cancel', 'work', '--state', 'waiting');
    expect(await idsOf('waiting')).toEqual(['alone', 'other-waits']);
    const { actions } = JSON.parse((await run('actions', '--json')).out) as { actions: QueueAction[] };
    const ended = actions.filter(({ result }) => result === 'ok');
    expect(ended.map(({ action, target, count }) => [action, target, count])).toEqual([
      ['job.cancel', '{"state":"waiting","group":"acme"}', 1],
      ['job.remove', '{"state":"waiting","group":"acme","limit":1}', 1],
      ['job.promote', '{"group":"acme"}', 1],
    ]);
    expect((await run('actions')).out).toContain('group acme');
  });

  it('lists groups that dead jobs stop first, with their names on 80 columns', async () => {
    const groups = Array.from({ length: 12 }, (_, i) => `tenant-${i + 1}`);
    const { queue } = await withStopped(groups.slice(5));
    await queue.pause();
    await queue.addBulk(groups.slice(0, 5).map((group) => ({ name: 'x', data: null, options: { group } })));
    await queue.group('tenant-4').pause();
    process.env['COLUMNS'] = '80';
    const { out } = await run('groups', 'work', '--limit', '9').finally(() => delete process.env['COLUMNS']);
    const lines = out.split('\n').slice(1);
    expect(lines.slice(0, 9).map((line) => line.split(' ')[1])).toEqual(
      [6, 7, 8, 9, 10, 11, 12, 4, 1].map((n) => `tenant-${n}`),
    );
    expect(lines[0]).toMatch(/^group tenant-6 .* stopped by tenant-6-1$/);
    expect(lines[7]).toMatch(/ paused$/);
    expect(lines[9]).toBe('there are more: --limit 1000, or godwit groups work show <group>');
    const { out: all } = await run('doctor');
    expect(all).toContain(
      '7 groups are stopped by their dead jobs, and 7 jobs wait in them: "tenant-6", "tenant-7", "tenant-8" and 4 others; retry or remove these jobs; godwit groups work\n',
    );
    expect(all).toContain('7 dead jobs; godwit dead work');
  });
});

it('queues and doctor name the prefixes that have queues, if the given one has none', async () => {
  const { queue } = await bootQueue(redis, { watch: false });
  await queue.add('x', null);
  // The user of the other tests may not look for keys.
  const url = new URL(redis.url);
  const admin = { url: `redis://${url.host}`, prefix: `${redis.prefix}x` };
  const advice = `use --prefix: there are queues of ${redis.prefix}`;
  const { out } = await runOn(admin, 'queues');
  expect(out).toContain(`there are no queues with the prefix ${redis.prefix}x; use --prefix: `);
  expect(out).toContain(redis.prefix);
  expect((await runOn(admin, 'doctor')).out).toContain(advice.slice(0, 30));
});
