import { describe, expect, it } from 'vitest';
import type { NoteCall } from '#lib/contract/engine.js';
import { note } from '#lib/engine/scripts/work.js';
import { useServer } from '../support/server.js';
import { completed, dead, kept, QUEUE, released, retried, useQueue, WORKER } from './support.js';
import { changingNothing, itRefusesWrongTypes } from './unchanged.js';

// Calls are counted here, also those of other specs on the same server.
const q = useQueue({ server: useServer() });

const noting = (more: Partial<NoteCall>) =>
  q.engine.note(QUEUE, { worker: WORKER, id: 'a', name: 'work', attempt: 2, ...more });
const heard = () => changingNothing(q, () => noting({ progress: '1', log: 'x' }));
const logs = async (id = 'a') => (await q.engine.admin.get(QUEUE, id))!.logs.map(({ text }) => text);

it('keeps the last progress and writes an event for each', async () => {
  await q.hold('a');
  expect(await noting({ progress: '{"done":1}' })).toBe(true);
  expect(await noting({ progress: '{"done":2}' })).toBe(true);
  expect(await q.admin.hget(q.key('progress'), 'a')).toBe('{"done":2}');
  expect((await q.events()).slice(2)).toMatchObject([
    { number: 3, type: 'progress', id: 'a', name: 'work', attempt: 2, progress: '{"done":1}' },
    { number: 4, type: 'progress', progress: '{"done":2}' },
  ]);
  expect(await q.admin.exists(q.key('logs'))).toBe(0);
});

it('keeps log lines, without an event', async () => {
  await q.hold('a');
  const before = await q.engine.lastEvent(QUEUE);
  expect(await noting({ log: 'one' })).toBe(true);
  expect(await noting({ log: 'two %s \\ 🦆' })).toBe(true);
  expect(await logs()).toEqual(['one', 'two %s \\ 🦆']);
  expect(await q.engine.lastEvent(QUEUE)).toBe(before);
  expect(await q.admin.exists(q.key('progress'))).toBe(0);
});

it('keeps the maximum of the queue, and for an existing log the maximum from its start', async () => {
  await q.hold('a');
  const three = q.engineWith({ logsMax: 3 });
  const write = (engine: typeof three, log: string) =>
    engine.note(QUEUE, { worker: WORKER, id: 'a', name: 'job', attempt: 1, log });
  await write(q.engineWith({ logsMax: 0 }), 'x');
  expect(await q.admin.exists(q.key('logs'))).toBe(0);
  await write(three, 'a\nb');
  await write(three, 'c\nd');
  expect(await logs()).toEqual(['b', 'c', 'd']);
  await write(q.engine, 'e');
  expect(await logs()).toEqual(['c', 'd', 'e']);
});

it('drops every line of a long log with its job', async () => {
  await q.hold('a');
  const log = Array.from({ length: 1_300 }, (_, i) => `line ${i}`).join('\n');
  await q
    .engineWith({ logsMax: 1_000 })
    .note(QUEUE, { worker: WORKER, id: 'a', name: 'job', attempt: 1, log });
  expect((await logs()).length).toBe(1_000);
  expect((await logs())[0]).toBe('line 300');
  await q.settle({ id: 'a', name: 'job', attempt: 1, durationUs: 0, outcome: { kind: 'completed' } });
  expect(await q.admin.exists(q.key('logs'))).toBe(0);
});

it('keeps the last 100 lines, also if one text has several', async () => {
  await q.hold('a');
  const lines = Array.from({ length: 100 }, (_, i) => `line ${i}`);
  await noting({ log: lines.join('\n') });
  expect(await logs()).toEqual(lines);
  await noting({ log: 'line 100' });
  expect(await logs()).toEqual([...lines.slice(1), 'line 100']);
  await noting({ log: 'x\ny\nz' });
  expect(await logs()).toEqual([...lines.slice(4), 'line 100', 'x', 'y', 'z']);
  await noting({ log: Array.from({ length: 250 }, (_, i) => `more ${i}`).join('\n') });
  expect(await logs()).toEqual(Array.from({ length: 100 }, (_, i) => `more ${i + 150}`));
});

it('keeps the lines of each job apart', async () => {
  await q.hold('a', 'b');
  await noting({ log: 'of a', progress: '1' });
  await noting({ id: 'b', log: 'of b' });
  expect(await logs()).toEqual(['of a']);
  expect(await logs('b')).toEqual(['of b']);
});

it('deletes all lines when the job ends, however it ends, so that a new job with its id has none', async () => {
  const ends: Record<string, () => Promise<unknown>> = {
    completed: () => q.settle(completed('a')),
    removed: async () => {
      await q.settle(retried('a'));
      await q.engine.admin.remove(QUEUE, 'a');
    },
    cancelled: async () => {
      await q.engine.admin.cancel(QUEUE, 'a', 'why');
      await q.settle(released('a'));
    },
    'completed, kept': async () => {
      await q.settle(kept('a', 1e6));
      await q.engine.upkeep.clean(QUEUE, { state: 'completed', olderThanMs: 0, limit: 9 });
    },
    'completed, its retention over': async () => {
      await q.settle(kept('a', 1e6));
      await q.admin.zadd(q.key('completed'), 1, 'a');
      await q.engine.upkeep.trim(QUEUE);
    },
    dead: async () => {
      await q.settle(dead('a'));
      await q.admin.zadd(q.key('dead'), 1, 'a');
      await q.engine.upkeep.trim(QUEUE);
    },
    retried: async () => {
      await q.settle(dead('a'));
      await q.engine.upkeep.retryDead(QUEUE, { ids: ['a'] });
    },
    'under an id that is added anew': async () => {
      await q.settle(kept('a', 1e6));
      await q.admin.zadd(q.key('completed'), 1, 'a');
      await q.add('a');
    },
  };
  for (const [how, end] of Object.entries(ends)) {
    await q.hold('a');
    for (const lines of [1, 130]) await noting({ log: 'x\n'.repeat(lines) });
    await end();
    expect(await q.admin.exists(q.key('logs')), how).toBe(0);
  }
});

it('stores the attempt in front of each line, so that older versions show it', async () => {
  await q.hold('a');
  await noting({ log: 'one', attempt: 1 });
  await noting({ log: '#7 two %1\nthree', attempt: 12 });
  expect(await q.hash('logs')).toEqual({
    a: '\n3',
    'a\n0': '#1 \u001fone',
    'a\n1': '#12 \u001f#7 two %1',
    'a\n2': '#12 \u001fthree',
  });
  expect((await q.engine.admin.get(QUEUE, 'a'))!.logs).toEqual([
    { attempt: 1, text: 'one' },
    { attempt: 12, text: '#7 two %1' },
    { attempt: 12, text: 'three' },
  ]);
});

it('reads lines as older versions stored them, and continues after them', async () => {
  const known = async () => (await q.engine.admin.get(QUEUE, 'a'))!.logs;
  await q.hold('a');
  await q.admin.hset(q.key('logs'), 'a', 'one\n#2 two');
  const old = [
    { attempt: null, text: 'one' },
    { attempt: null, text: '#2 two' },
  ];
  expect(await known()).toEqual(old);
  await noting({ log: 'three' });
  expect(await known()).toEqual([...old, { attempt: 2, text: 'three' }]);
});

it('is repaired if lines without a log are left', async () => {
  await q.hold('a', 'b');
  await noting({ log: 'one\ntwo' });
  await q.admin.hset(q.key('logs'), 'gone\n0', 'x', 'gone\n7', 'x');
  const { violations } = await q.engine.admin.audit(QUEUE);
  expect(violations).toMatchObject([{ kind: 'stray', id: 'gone', where: ['logs'] }]);
  await q.engine.admin.repair(QUEUE, 5);
  expect((await q.engine.admin.audit(QUEUE)).violations).toEqual([]);
  expect(Object.keys(await q.hash('logs')).toSorted()).toEqual(['a', 'a\n0', 'a\n1']);
});

it('forgets large events that were trimmed by their number', async () => {
  const few = q.engineWith({ maxEvents: 5 });
  await q.hold('a');
  const call = {
    worker: WORKER,
    id: 'a',
    name: 'work',
    attempt: 1,
    progress: JSON.stringify('x'.repeat(2_000)),
  };
  for (let i = 0; i < 40; i++) await few.note(QUEUE, call);
  expect(await q.zset('large')).toHaveLength(5);
});

it('writes two fields for a line, however many there are', async () => {
  await q.hold('a');
  const writtenBy = async (line: string) => {
    const before = await q.hash('logs');
    await noting({ log: line });
    return Object.entries(await q.hash('logs')).filter(([field, value]) => before[field] !== value);
  };
  expect(await writtenBy('first')).toHaveLength(2);
  for (let i = 0; i < 15; i++)
    await noting({ log: Array.from({ length: 10 }, (_, n) => `${i} ${n}`).join('\n') });
  expect(await writtenBy('last')).toHaveLength(2);
  expect(await q.admin.hlen(q.key('logs'))).toBe(101);
});

describe('several of one tick', () => {
  /** How often a command ran. */
  const callsOf = async (name: string) => {
    const stats = await q.admin.info('commandstats');
    return Number(new RegExp(`cmdstat_${name}:calls=(\\d+)`).exec(stats)?.[1] ?? 0);
  };

  it('are stored by one call, each with its job, in their order', async () => {
    await q.hold('a', 'b');
    const events = (await q.events()).length;
    // The server may not know the script before.
    await noting({ id: 'gone', log: 'x' });
    await q.admin.config('RESETSTAT');
    const held = await Promise.all([
      noting({ progress: '1', log: 'first' }),
      noting({ id: 'gone', progress: '2', log: 'lost' }),
      noting({ id: 'b', name: 'other', attempt: 3, progress: '"\\n"' }),
      noting({ log: 'second' }),
      noting({ progress: '{"a":4}' }),
    ]);
    expect(held).toEqual([true, false, true, true, true]);
    expect([await callsOf('evalsha'), await callsOf('xadd')]).toEqual([1, 1]);
    expect(await q.hash('progress')).toEqual({ a: '{"a":4}', b: '"\\n"' });
    expect(await logs()).toEqual(['first', 'second']);
    expect((await q.events()).slice(events)).toMatchObject([
      { type: 'progress', id: 'a', name: 'work', attempt: 2, progress: '1' },
      { type: 'progress', id: 'b', name: 'other', attempt: 3, progress: '"\\n"' },
      { type: 'progress', id: 'a', name: 'work', attempt: 2, progress: '{"a":4}' },
    ]);
  });

  it.each([
    ['150 small ones', 150, 10],
    ['two large ones', 2, 60_000],
  ])('are stored by two calls if they are %s', async (_, count, bytes) => {
    await q.hold('a');
    await noting({ id: 'gone', log: 'x' });
    await q.admin.config('RESETSTAT');
    const held = await Promise.all(
      Array.from({ length: count }, (_, i) => noting({ log: `${i} `.padEnd(bytes, 'x') })),
    );
    expect(held).toEqual(Array.from({ length: count }, () => true));
    expect(await callsOf('evalsha')).toBe(2);
    expect((await logs()).map((text) => parseInt(text))).toEqual(
      Array.from({ length: count }, (_, i) => i).slice(-100),
    );
  });

  it('of another worker or queue are stored on their own', async () => {
    await q.hold('a');
    const others = [
      q.engine.note(QUEUE, { worker: 'w2', id: 'a', name: 'work', attempt: 2, log: 'x' }),
      q.engine.note('other', { worker: WORKER, id: 'a', name: 'work', attempt: 2, log: 'x' }),
    ];
    expect(await Promise.all([noting({ log: 'mine' }), ...others])).toEqual([true, false, false]);
    expect(await logs()).toEqual(['mine']);
  });

  it('have large values counted together', async () => {
    await q.hold('a', 'b');
    const progress = JSON.stringify('x'.repeat(2_000));
    await Promise.all([
      noting({ progress }),
      noting({ id: 'b', progress: '1' }),
      noting({ id: 'b', progress }),
    ]);
    expect(await q.admin.zrange(q.key('large'), '0', '-1', 'WITHSCORES')).toEqual([
      expect.any(String),
      `${2 * 2_002}`,
    ]);
  });

  it('all reject if their call fails', async () => {
    await q.hold('a');
    await q.admin.set(q.key('logs'), 'not ours');
    const all = await Promise.allSettled([noting({ log: 'x' }), noting({ progress: '1' })]);
    expect(all.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
    expect(await q.admin.exists(q.key('progress'))).toBe(0);
  });
});

describe('of a run that lost its job is ignored', () => {
  it('if it never held it', async () => {
    await q.add('a');
    expect(await heard()).toBe(false);
  });

  it('if another worker holds it now', async () => {
    await q.hold('a');
    await q.engine.release(QUEUE, { worker: WORKER, ids: ['a'], leave: false });
    await q.claim(1, 'w2');
    expect(await heard()).toBe(false);
  });
});

it('without content changes nothing', async () => {
  await q.hold('a');
  expect(await changingNothing(q, () => noting({}))).toBe(true);
});

describe('refused', () => {
  itRefusesWrongTypes(q, {
    keys: note.keys,
    except: ['events'],
    async prepare() {
      await q.hold('a');
      return () => noting({ progress: JSON.stringify('x'.repeat(5_000)), log: 'x' });
    },
  });
});
