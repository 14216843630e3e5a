import { hostname, userInfo } from 'node:os';
import { expect, it, vi } from 'vitest';
import { targetText } from '#lib/subpaths/dashboard/filter-text.js';
import { bootQueue } from '../support/queue-app.js';
import { useRedis } from '../support/redis.js';
import { runOn } from './support.js';

const redis = useRedis();
const me = `cli:${userInfo().username}@${hostname()}`;

const run = (...words: string[]) => runOn(redis, ...words);
const actions = async (...words: string[]) =>
  (
    JSON.parse((await run('actions', '--json', ...words)).out) as { actions: Record<string, unknown>[] }
  ).actions.map(({ actor, action, queue, target, count, result }) =>
    [actor, action, queue, target, count, result].join('|'),
  );

it('records what the command changes, and lists it', async () => {
  const { queue } = await bootQueue(redis, { watch: false });
  expect(await run('actions')).toEqual({ code: 0, out: 'no actions are recorded\n', err: '' });
  await queue.as('ada').pause();
  await run('add', 'work', 'one', '--id', 'a', '-d', '"canary"', '--new');
  await run('cancel', 'work', 'a');
  await run('clean', 'work', 'waiting', '--where', 'tenant=canary', '--yes');
  await run('remove', 'work', 'nobody', '--yes');
  await run('quiet', '--process', 'nobody:1', '--yes');
  expect(await actions()).toEqual([
    `${me}|process.quiet||nobody:1||GODWIT_PROCESS_NOT_FOUND`,
    `${me}|job.remove|work|nobody||GODWIT_JOB_NOT_FOUND`,
    `${me}|job.remove|work|{"state":"waiting","where":["tenant"]}|0|ok`,
    `${me}|job.remove|work|{"state":"waiting","where":["tenant"]}||started`,
    `${me}|job.cancel|work|a|1|ok`,
    `${me}|job.add|work|a|1|ok`,
    'ada|queue.pause|work||1|ok',
  ]);
  expect((await run('actions')).out).toMatch(/ job\.remove +work +0 +ok +waiting jobs with data tenant$/m);
  expect(await actions('work', '--actor', 'ada')).toEqual(['ada|queue.pause|work||1|ok']);
  const page = await run('actions', '--limit', '1', '--actor', 'ada');
  expect(page.out).toMatch(
    /^AT +ACTOR +ACTION +QUEUE +COUNT +RESULT +WHICH\n20\S+Z +ada +queue\.pause +work +1 +ok +-\n/,
  );
  const cursor = /--cursor (\S+)/.exec(page.out)?.[1];
  expect(cursor).toBeDefined();
  expect(await actions('--actor', 'ada', '--cursor', cursor!)).toEqual([]);
});

it('shows which jobs an act was on, in a terminal of 80 columns', async () => {
  await bootQueue(redis, { watch: false });
  await run('add', 'work', 'welcome', '--new');
  await run('clean', 'work', 'waiting', '--name', 'welcome', '--older-than', '36h', '--yes');
  vi.stubEnv('COLUMNS', '80');
  const { out } = await run('actions').finally(() => vi.unstubAllEnvs());
  expect(out.split('\n').filter((line) => line.length > 80)).toEqual([]);
  expect(out).not.toContain('…');
  expect(out.replaceAll(/\s+/g, ' ')).toMatch(/ ok waiting jobs with name welcome, age over 36 h /);
});

it('refuses wrong arguments', async () => {
  for (const words of [['--limit', '0'], ['--cursor', 'made up'], ['--actor', ''], ['a b']]) {
    const { code, err } = await run('actions', ...words);
    expect([words, code, err.length > 0]).toEqual([words, 2, true]);
  }
});

it.each([
  ['a', 'a'],
  ['{"state":"dead","name":["x","y"],"olderThan":"2h"}', 'dead jobs with name x, y, age over 2\u00a0h'],
  ['retry {"limit":10}', 'retry at most 10 jobs'],
  ['remove {}', 'remove all jobs'],
  ['["a","b"]', 'a, b'],
  ['7', '7'],
  [
    'shared openai {"concurrency":null,"rate":{"max":5,"per":60000}}',
    'shared openai concurrency none, rate max 5 per 60000',
  ],
  ['{"state":"dead","contains":"a text that was cu', '{"state":"dead","contains":"a text that was cu'],
])('shows %s without JSON', (target, text) => {
  expect(targetText(target)).toBe(text);
});

it('shows an id that looks like a filter as it is', async () => {
  const { queue } = await bootQueue(redis, { watch: false });
  const ids = ['{}', '{"state":"dead"}', '["a"]', 'a {"limit":10}'];
  for (const id of ids) await queue.as('ada').add('x', null, { id });
  for (const id of ids) await queue.as('ada').remove(id);
  const shown = (await actions()).map((line) => targetText(line.split('|')[3]!));
  expect(shown.toReversed()).toEqual([...ids, ...ids]);
});
