import { describe, expect, it } from 'vitest';
import type { Job } from '#lib/job/job.js';
import type { AddResult } from '#lib/producer/queue.js';
import { keyOf, bootQueue, itOnRedis, PATIENT, type Handlers } from '../support/queue-app.js';
import { gated, oneOfEach, refused } from '../support/queue-states.js';
import { useRedis } from '../support/redis.js';

const redis = useRedis();
const EMPTY = { waiting: 0, delayed: 0, active: 0, completed: 0, dead: 0, cancelled: 0 };

describe('addBulk', () => {
  const job = (data: unknown, options = {}) => ({ name: 'job', data, options });

  it('adds thousands of jobs in the order given, and answers in it', async () => {
    const ran: number[] = [];
    const handlers: Handlers = { job: (one: Job<number>) => void ran.push(one.data) };
    const { queue, said } = await bootQueue(redis, { handlers, concurrency: 1 });
    const numbers = Array.from({ length: 2500 }, (_, i) => i);
    const added = await queue.addBulk(numbers.map((data) => job(data)));
    expect(added).toHaveLength(2500);
    expect(new Set(added.map(({ id }) => id)).size).toBe(2500);
    expect(added.every(({ duplicate, queue: name }) => !duplicate && name === 'work')).toBe(true);
    await said.take(2500, (event) => event.type === 'completed', PATIENT);
    expect(ran).toEqual(numbers);
    expect(await queue.addBulk([])).toEqual([]);
  });

  it('takes options per job, and returns for each whether it existed already', async () => {
    const { queue } = await bootQueue(redis, { watch: false });
    await queue.add('first', 'kept', { id: 'a' });
    const added = await queue.addBulk([
      job(1, { id: 'a' }),
      job(2, { id: 'b', delay: '1h' }),
      job(3, { id: 'b' }),
      job(4, { priority: 5 }),
    ]);
    const added1 = (id: unknown) => ({ id, queue: 'work', name: 'job', duplicate: false });
    const there = (id: string, state: string) => ({ ...added1(id), duplicate: true, state });
    expect(added).toEqual<AddResult[]>([
      there('a', 'waiting'),
      added1('b'),
      there('b', 'delayed'),
      added1(expect.any(String)),
    ] as AddResult[]);
    expect(await queue.get('a')).toMatchObject({ name: 'first', data: 'kept' });
    expect(await queue.get('b')).toMatchObject({ data: 2, state: 'delayed' });
    expect(await queue.counts()).toMatchObject({ waiting: 2, delayed: 1 });
  });

  it('stores nothing if one entry is wrong, and names it', async () => {
    const { queue } = await bootQueue(redis, { watch: false });
    const wrong: [string, unknown, string][] = [
      ['a payload', job({ at: [0, () => 1] }), 'addBulk()[1].data.at[1] is a function'],
      ['an option', job(1, { delay: '-1s' }), 'addBulk()[1].options.delay must be'],
      [
        'an unknown option',
        job(1, { dealy: 1 }),
        'addBulk()[1].options.dealy is not an option; did you mean delay?',
      ],
      ['an id', job(1, { id: 'a\nb' }), 'addBulk()[1]: a job id is'],
      ['a name', { name: '', data: 1 }, 'addBulk()[1]: a job name is'],
      ['a size', job('x'.repeat(1_100_000)), 'addBulk()[1]: the data of the job takes'],
      ['no data', { name: 'job' }, 'addBulk()[1].data is undefined'],
      ['no object', null, 'addBulk()[1] must be an object with name and data, got null'],
      ['options that are none', job(1, 'soon'), 'addBulk()[1].options must be an object'],
    ];
    for (const [what, entry, message] of wrong) {
      const error = await refused(queue.addBulk([job(1), entry as never, job(3)]));
      expect(error['message'], what).toContain(message);
      expect(error['code'], what).toMatch(/^GODWIT_/);
      // After the first chunk too: all jobs are checked before any is sent.
      const far = Array.from({ length: 1500 }, () => job(1));
      const late = await refused(queue.addBulk([...far, entry as never]));
      expect(late['message'], what).toContain(message.replace('[1]', '[1500]'));
    }
    expect(await refused(queue.addBulk('jobs' as never))).toMatchObject({ code: 'GODWIT_INVALID_OPTION' });
    expect(await redis.keys()).toEqual([keyOf(redis, 'meta')]);
  });
});

describe('ids', () => {
  it('of the caller may look like anything, and come back byte by byte', async () => {
    const ids = [
      'meta',
      'jobs',
      'wait',
      'active',
      'paused',
      '{x}',
      '}{',
      '__proto__',
      'constructor',
      'toString',
      '0',
      '-1',
      '1e3',
      'NaN',
      ' ',
      'a:b',
      '*',
      '?[a-z]',
      '"quoted\\"',
      '🦆',
      'e\u0301',
      '\u00e9',
      '\u202eright to left',
      'é'.repeat(127) + 'x',
      'x'.repeat(255),
    ];
    const ran = new Map<string, unknown>();
    const handlers: Handlers = { job: (job: Job) => void ran.set(job.id, job.data) };
    const defaults = { retention: '1h' };
    const { queue, ended, said } = await bootQueue(redis, { handlers, queue: { defaults } });
    const singles = await Promise.all(ids.map((id, data) => queue.add('job', data, { id })));
    expect(singles.map(({ id }) => id)).toEqual(ids);
    for (const [data, id] of ids.entries()) {
      expect(await ended(id), id).toMatchObject({ type: 'completed', jobId: id });
      expect(await queue.get(id), id).toMatchObject({ id, data, state: 'completed' });
    }
    expect([...ran]).toEqual(expect.arrayContaining(ids.map((id, data) => [id, data])));
    expect(ran.size).toBe(ids.length);
    expect(await queue.counts()).toMatchObject({ completed: ids.length, waiting: 0 });
    for (const id of ids) {
      const again = await queue.add('job', 'again', { id, idHeldBy: ['completed'] });
      expect(again, id).toMatchObject({ duplicate: true, state: 'completed' });
      await queue.remove(id);
    }
    expect(await queue.counts()).toEqual(EMPTY);
    expect(said.values.filter((event) => event.type === 'added')).toHaveLength(ids.length);
  });

  it('make a second add a duplicate, which returns the state of the first job', async () => {
    const { gate, handlers } = gated();
    const defaults = { idHeldBy: ['completed', 'dead'] as const };
    const { queue } = await bootQueue(redis, { handlers, queue: { defaults } });
    for (const [state, id] of Object.entries(await oneOfEach(queue))) {
      const before = await queue.get(id);
      expect(await queue.add('other', 'new', { id, delay: '1h' }), id).toEqual({
        id,
        queue: 'work',
        name: 'other',
        duplicate: true,
        state,
      });
      expect(await queue.get(id), id).toEqual(before);
    }
    for (const id of ['completed', 'dead'])
      expect(await queue.add('done', 1, { id, idHeldBy: [] })).toMatchObject({ duplicate: false });
    const race = await Promise.all(Array.from({ length: 50 }, () => queue.add('done', 1, { id: 'raced' })));
    expect(race.filter(({ duplicate }) => !duplicate)).toHaveLength(1);
    gate.open();
  });

  it('belong to the first of several adds at once, whatever is added between them', async () => {
    const { queue } = await bootQueue(redis, { watch: false });
    await queue.add('job', 'there', { id: 'there' });
    for (let i = 0; i < 20; i++) {
      const id = `new ${i}`;
      const [first, , second] = await Promise.all([
        queue.add('job', 'first', { id }),
        queue.add('job', 'again', { id: 'there' }),
        queue.add('job', 'second', { id }),
      ]);
      expect([first.duplicate, second.duplicate]).toEqual([false, true]);
      expect(await queue.get(id)).toMatchObject({ data: 'first' });
    }
  });

  itOnRedis(
    'are those of the first too where its call is made again, and what is added behind it is not',
    async () => {
      const { queue } = await bootQueue(redis, { watch: false });
      await queue.add('job', 0, { id: 'known' });
      await redis.admin.script('FLUSH');
      // The server knows the script of the second call and has forgotten that of the first.
      await queue.add('job', 1, { delay: '1h' });
      const added = await Promise.all([
        queue.add('job', 'first', { id: 'x' }),
        queue.add('job', 'second', { id: 'x' }),
        queue.add('job', 'third', { priority: 1 }),
      ]);
      expect(added.map(({ duplicate }) => duplicate)).toEqual([false, true, false]);
      expect(await queue.get('x')).toMatchObject({ data: 'first' });
    },
  );

  it('are generated if none is given: unique, and sorted by time', async () => {
    const { queue } = await bootQueue(redis, { watch: false });
    const ids: string[] = [];
    for (let i = 0; i < 3; i++) {
      const added = await Promise.all(Array.from({ length: 100 }, () => queue.add('job', 1)));
      ids.push(...added.map(({ id }) => id));
    }
    expect(new Set(ids).size).toBe(300);
    expect(ids.toSorted()).toEqual(ids);
  });
});
