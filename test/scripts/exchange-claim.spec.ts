import { describe, expect, it } from 'vitest';
import { completed, dead, job, kept, QUEUE, released, useQueue, WORKER } from './support.js';

// The jobs that an exchange promotes and hands out, and the workers it wakes.
const q = useQueue();

async function suspects(...ids: string[]): Promise<void> {
  await q.admin.hset(q.key('jobs'), ...ids.flatMap((id) => [id, job(id).body]));
  await q.admin.hset(q.key('stalls'), ...ids.flatMap((id) => [id, 2]));
  await q.admin.rpush(q.key('suspects'), ...ids);
}

describe('promotes', () => {
  it('to the place of its priority', async () => {
    await q.add(
      job('9', { dueAt: 1, priority: 9 }),
      job('2', { dueAt: 2, priority: 2 }),
      job('plain', { dueAt: 3 }),
    );
    await q.add(job('5', { priority: 5 }));
    expect(await q.claim()).toEqual(['plain', '2', '5', '9']);
    expect(await q.admin.exists(q.key('priorities'), q.key('delayed'))).toBe(0);
  });
});

describe('claims', () => {
  it('one suspect at a time, before all others, if the worker may have one', async () => {
    await suspects('s1', 's2');
    await q.add('a', 'b');
    const first = await q.exchanged({ want: 2 });
    expect(first.claimed.map(({ id, stalls }) => [id, stalls])).toEqual([
      ['s1', 2],
      ['a', 0],
    ]);
    expect((await q.exchanged({ want: 5, maySuspect: false })).claimed.map(({ id }) => id)).toEqual(['b']);
    expect((await q.exchanged({ want: 5, settled: [completed('s1')] })).claimed).toMatchObject([
      { id: 's2' },
    ]);
  });

  it('a suspect if only one job is wanted', async () => {
    await suspects('s1');
    await q.add('a');
    expect(await q.claim(1)).toEqual(['s1']);
  });

  it('nothing while the queue is paused, but settles and promotes', async () => {
    await q.hold('a');
    await q.add('b', job('due', { dueAt: 1 }));
    await suspects('s1');
    await q.engine.admin.pause(QUEUE);
    while (await q.wasRung());
    const { claimed, supply, lost } = await q.exchanged({ want: 5, settled: [completed('a')] });
    expect({ claimed, supply, lost }).toEqual({ claimed: [], supply: 'paused', lost: [] });
    expect(await q.engine.admin.counts(QUEUE)).toMatchObject({
      waiting: 3,
      delayed: 0,
      active: 0,
      paused: true,
    });
    expect(await q.wasRung()).toBe(false);
    await q.engine.admin.resume(QUEUE);
    expect(await q.claim()).toEqual(['s1', 'b', 'due']);
  });
});

describe('a job whose body is missing', () => {
  it('is dead as corrupt, and does not stop its batch', async () => {
    await q.add('a', 'x', 'b', job('y', { priority: 1 }));
    await q.admin.hdel(q.key('jobs'), 'x', 'y');
    expect(await q.claim()).toEqual(['a', 'b']);
    expect(await q.engine.admin.counts(QUEUE)).toMatchObject({ waiting: 0, active: 2, dead: 2 });
    expect(await q.engine.admin.get(QUEUE, 'x')).toMatchObject({
      state: 'dead',
      body: '',
      failure: { name: 'CorruptJob', reason: 'corrupt' },
    });
    const said = (await q.events())
      .slice(4)
      .map(({ number, type, id, reason }) => [number, type, id, reason]);
    expect(said).toEqual([
      [5, 'dead', 'x', 'corrupt'],
      [6, 'dead', 'y', 'corrupt'],
      [7, 'active', 'a', ''],
      [8, 'active', 'b', ''],
    ]);
    expect(await q.totals()).toEqual({ dead: '2' });
    expect(await q.engine.lastEvent(QUEUE)).toBe(8);
  });

  it('leaves no lease if nothing else was claimed', async () => {
    await q.add('x');
    await q.admin.hdel(q.key('jobs'), 'x');
    expect(await q.claim()).toEqual([]);
    expect(await q.admin.exists(q.key('workers'), q.key('active'))).toBe(0);
    // A dead job does not hold its id.
    expect(await q.add('x')).toEqual([]);
    expect(await q.engine.admin.remove(QUEUE, 'x')).toBe('removed');
  });
});

describe('the bell', () => {
  it('does not ring if all promoted jobs are claimed at once', async () => {
    await q.add(job('a', { dueAt: 1 }), job('b', { dueAt: 2, priority: 5 }));
    while (await q.wasRung());
    expect(await q.claim()).toEqual(['a', 'b']);
    expect(await q.wasRung()).toBe(false);
  });

  it('does not ring for jobs that cannot run: kept, dead or delayed', async () => {
    await q.hold('kept', 'dead');
    await q.settle(kept('kept', 60_000), dead('dead'));
    await q.add(job('later', { delayMs: 60_000 }));
    while (await q.wasRung());
    expect((await q.exchanged({ want: 10 })).claimed).toEqual([]);
    await q.settle();
    expect(await q.wasRung()).toBe(false);
  });

  it('rings if a worker without free slots settles while jobs wait', async () => {
    await q.hold('a');
    await q.add('b');
    await q.wasRung();
    await q.settle(completed('a'));
    expect(await q.wasRung()).toBe(true);
  });

  it('rings for jobs that were promoted or released and not claimed', async () => {
    await q.hold('a');
    await q.wasRung();
    await q.settle(released('a'));
    expect(await q.wasRung()).toBe(true);
    await q.claim();
    await q.add(job('due', { dueAt: 1 }));
    await q.wasRung();
    await q.exchange();
    expect(await q.wasRung()).toBe(true);
  });

  it('does not ring if the worker claims all jobs that it releases', async () => {
    await q.hold('a', 'b');
    while (await q.wasRung());
    await q.exchange({ settled: [released('a'), released('b')], want: 2 });
    expect(await q.wasRung()).toBe(false);
  });

  it('rings for the next suspect when a worker took one', async () => {
    await suspects('s1', 's2');
    await q.claim(5);
    expect(await q.wasRung()).toBe(true);
  });

  it('does not ring for suspects that the worker left because it has one: it would only wake itself, again and again', async () => {
    await suspects('s1', 's2');
    await q.claim(1);
    await q.wasRung();
    await q.exchanged({ want: 5, maySuspect: false });
    expect(await q.wasRung()).toBe(false);
    await q.add('a', 'b');
    await q.wasRung();
    await q.exchanged({ want: 1, maySuspect: false });
    expect(await q.wasRung()).toBe(true);
    expect(await q.admin.smembers(q.key('active'))).toEqual(expect.arrayContaining(['s1', 'a']));
    expect(WORKER).toBe('w1');
  });
});
