import { describe, expect, it } from 'vitest';
import type { NoteCall } from '#lib/contract/engine.js';
import { note } from '#lib/engine/scripts/note.js';
import { QUEUE, useQueue, WORKER } from './support.js';
import { changingNothing, itRefusesWrongTypes } from './unchanged.js';

const q = useQueue();

const noting = (more: Partial<NoteCall>) =>
  q.engine.note(QUEUE, { worker: WORKER, id: 'a', name: 'work', attempt: 2, ...more });
const heard = () => changingNothing(q, () => noting({ progress: '1', log: 'x' }));
const logs = async () => (await q.admin.hget(q.key('logs'), 'a'))!.split('\n');

it('keeps the last progress and says each', async () => {
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

it('keeps the last 100 lines, also where one text has several', async () => {
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
  expect(await q.hash('logs')).toEqual({ a: 'of a', b: 'of b' });
});

describe('of a run that lost its job is not heard', () => {
  it('where it never held it', async () => {
    await q.add('a');
    expect(await heard()).toBe(false);
  });

  it('where another worker holds it now', async () => {
    await q.hold('a');
    await q.engine.release(QUEUE, { worker: WORKER, ids: ['a'], leave: false });
    await q.claim(1, 'w2');
    expect(await heard()).toBe(false);
  });
});

it('with nothing to say changes nothing', async () => {
  await q.hold('a');
  expect(await changingNothing(q, () => noting({}))).toBe(true);
});

describe('refused', () => {
  itRefusesWrongTypes(q, {
    keys: note.keys,
    except: ['events'],
    async prepare() {
      await q.hold('a');
      return () => noting({ progress: '1', log: 'x' });
    },
  });
});
