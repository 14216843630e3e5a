import { expect, it } from 'vitest';
import type { QueueEngine } from '#lib/contract/engine.js';
import type { UpkeepVerbs } from '#lib/contract/upkeep-verbs.js';
import { RedisUnavailableError } from '#lib/errors.js';
import { Janitor } from '#lib/worker/janitor.js';
import { atEnd } from '../support/cleanup.js';
import { latch, until } from '../support/wait.js';

type Fake = Pick<UpkeepVerbs, 'claimUpkeep' | 'overgrown' | 'trim'>;

/** A janitor of two queues, and all its calls in order. */
function janitorOf(fake: Partial<Fake>, queues: readonly string[] = ['a', 'b']) {
  const asked: string[] = [];
  const all: Fake = {
    claimUpkeep: async () => true,
    overgrown: async () => queues,
    trim: async () => 0,
    ...fake,
  };
  const noting =
    <A extends unknown[], R>(name: string, act: (...args: A) => Promise<R>) =>
    (...args: A) => {
      asked.push(`${name} ${String(args[0])}`);
      return act(...args);
    };
  const upkeep = {
    claimUpkeep: noting('claim', all.claimUpkeep),
    overgrown: noting('look', all.overgrown),
    trim: noting('trim', all.trim),
  };
  const janitor = new Janitor({ upkeep } as unknown as QueueEngine, () => queues, 10);
  atEnd(() => janitor.stop());
  return { janitor, asked };
}

/** As long as another janitor needs for several rounds. */
async function severalRounds(): Promise<void> {
  const { janitor, asked } = janitorOf({ claimUpkeep: async () => false });
  janitor.start();
  await until(() => asked.length >= 4);
}

it('claims a round, checks all queues at once, and trims those that need it until nothing is left', async () => {
  const left: Record<string, number> = { b: 2 };
  const { janitor, asked } = janitorOf({
    overgrown: async () => Object.keys(left).filter((queue) => left[queue]! > 0),
    trim: async (queue) => left[queue]!--,
  });
  janitor.start();
  janitor.start();
  await until(() => asked.length > 5);
  expect(asked.slice(0, 6)).toEqual(['claim a,b', 'look a,b', 'trim b', 'trim b', 'trim b', 'claim a,b']);
});

it('leaves a round to the process that has claimed it', async () => {
  const { janitor, asked } = janitorOf({ claimUpkeep: async () => false });
  janitor.start();
  await until(() => asked.length >= 3);
  expect(new Set(asked)).toEqual(new Set(['claim a,b']));
});

it('makes no call without a queue', async () => {
  const { janitor, asked } = janitorOf({}, []);
  janitor.start();
  await severalRounds();
  expect(asked).toEqual([]);
});

it('never starts a round while one is running, however long it takes', async () => {
  const gate = latch('the gate');
  const { janitor, asked } = janitorOf({
    trim: async () => {
      await gate.promise;
      return 0;
    },
  });
  janitor.start();
  await until(() => asked.includes('trim a'));
  await severalRounds();
  expect(asked).toEqual(['claim a,b', 'look a,b', 'trim a']);
  gate.open();
  await until(() => asked.length > 4);
});

it('ends its round if Redis is away, and starts the next one on time', async () => {
  let away = true;
  const { janitor, asked } = janitorOf({
    trim: async () => {
      if (away) throw new RedisUnavailableError('trim', 'no', 'the connection broke');
      return 0;
    },
  });
  janitor.start();
  await until(() => asked.length >= 6);
  expect(asked.slice(0, 6)).toEqual(['claim a,b', 'look a,b', 'trim a', 'claim a,b', 'look a,b', 'trim a']);
  away = false;
  await until(() => asked.includes('trim b'));
});

it('stops at once, also in the middle of many jobs, and makes no further calls', async () => {
  const { janitor, asked } = janitorOf({ trim: async () => 500 });
  janitor.start();
  await until(() => asked.length > 4);
  await janitor.stop();
  const after = asked.length;
  janitor.start();
  await severalRounds();
  expect(asked).toHaveLength(after);
});
