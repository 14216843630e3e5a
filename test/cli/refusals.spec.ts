import { expect, it } from 'vitest';
import { bootQueue } from '../support/queue-app.js';
import { useRedis } from '../support/redis.js';
import { runOn } from './support.js';

const redis = useRedis();

const run = (...words: string[]) => runOn(redis, ...words);

it('a duration needs a unit, and nothing is deleted without one', async () => {
  const { queue } = await bootQueue(redis, { watch: false });
  await queue.add('x', null, { id: 'a' });
  for (const [words, what] of [
    [['clean', 'work', 'waiting', '--older-than', '2'], '--older-than'],
    [['clean', 'work', 'waiting', '--newer-than', '1.5'], '--newer-than'],
    [['dead', 'work', 'remove', '--older-than', '2'], '--older-than'],
    [['cancel', 'work', '--newer-than', '2'], '--newer-than'],
    [['promote', 'work', '--older-than', 'soon'], '--older-than'],
    [['add', 'work', 'x', '--delay', '10'], '--delay'],
    [['add', 'work', 'x', '--wait', '--timeout', '10'], '--timeout'],
    [['limits', 'work', 'hold', '30'], 'the time of limits hold'],
  ] as const) {
    const { code, err } = await run(...words, '--yes');
    expect([words, code]).toEqual([words, 2]);
    expect(err).toContain(`${what} must be a duration with a unit, such as 10m or 2h, got "`);
  }
  expect(await queue.counts()).toMatchObject({ waiting: 1, delayed: 0 });
  expect((await run('add', 'work', 'x', '--delay', '0')).code).toBe(0);
  expect((await run('clean', 'work', 'waiting', '--newer-than', '1.5h', '--yes')).out).toBe('2 removed\n');
});
