import { beforeEach, describe, expect, it } from 'vitest';
import type { ClaimAnswer, ExchangeCall } from '#lib/contract/engine.js';
import { enqueueClaimed } from '#lib/engine/scripts/enqueue-claimed.js';
import { useServer } from '../support/server.js';
import { completed, job, kept, LANE, LEASE_MS, QUEUE, useQueue, WORKER } from './support.js';
import { changingNothing, itRefusesWrongTypes, rememberingLonger } from './unchanged.js';

// A server of its own, since its scripts are forgotten here.
const q = useQueue({ server: useServer() });

/** The worker has spoken once. */
beforeEach(async () => {
  await q.exchange({ want: 0 });
});

interface Call {
  readonly id?: string;
  readonly seq?: number;
  readonly worker?: string;
  readonly claimSeq?: number;
  readonly maxEvents?: number;
}

function claimed({ id = 'a', seq = 1, worker = WORKER, claimSeq = 2, maxEvents = 100 }: Call = {}): Promise<
  number | null
> {
  const { body, name } = job(id);
  const keys = {
    worker: q.keys.worker(worker),
    active: q.keys.active(worker),
    lane: q.key('lane'),
    bodies: q.keys.bodies(id),
  };
  const values = enqueueClaimed.encode(
    { ...q.keys.fixed, ...keys },
    { seq, rememberMs: 10_000, id, body, name, worker, claimSeq, leaseMs: LEASE_MS, maxEvents },
    {},
  );
  return q.engine['store'].call(enqueueClaimed, values, 5_000);
}

describe('where nothing waits', () => {
  it('stores the job as claimed, in no line and at no bell, and tells of both moves', async () => {
    const now = await claimed();
    expect(Math.abs(now! - (await q.now()))).toBeLessThan(60_000);
    expect(await q.admin.hgetall(q.key('jobs'))).toEqual({ a: job('a').body });
    expect(await q.admin.smembers(q.key('active'))).toEqual(['a']);
    expect(await q.admin.exists(q.key('wait'), q.key('doorbell'))).toBe(0);
    const said = (await q.events()).map(({ type, id, name, attempt, number }) => [
      number,
      type,
      id,
      name,
      attempt,
    ]);
    expect(said).toEqual([
      [1, 'added', 'a', 'work', 1],
      [2, 'active', 'a', 'work', 1],
    ]);
  });

  it('gives a lease, and what repetitions of both are answered from', async () => {
    const now = await claimed();
    expect(Number(await q.admin.zscore(q.key('workers'), WORKER))).toBe(now! + LEASE_MS);
    expect(await q.hash('worker')).toMatchObject({ seq: '2', gave: 'a', lost: '', lease: String(LEASE_MS) });
    expect(await q.admin.get(q.key('lane'))).toBe('1\n');
    expect(await q.admin.pttl(q.key('lane'))).toBeGreaterThan(5_000);

    // The answer was lost: the producer says it again, and so does the worker.
    const call = { lane: LANE, seq: 1, rememberMs: 10_000, withinMs: 5_000, jobs: [job('a')] };
    expect(await q.engine.enqueue(QUEUE, call)).toEqual({ kind: 'stored', duplicates: [] });
    const again = await q.exchanged({ seq: 2, want: 10 });
    expect(again.claimed).toEqual([{ id: 'a', body: job('a').body, failed: 0, stalls: 0 }]);
    expect(await q.list('wait')).toEqual([]);
    await q.exchanged({ seq: 3, settled: [completed('a')] });
    expect(await q.totals()).toEqual({ processed: '1' });
  });

  it('says nothing where no events are kept', async () => {
    expect(await claimed({ maxEvents: 0 })).not.toBeNull();
    expect(await q.admin.exists(q.key('events'))).toBe(0);
  });

  it('comes behind an earlier call of the lane, and an earlier job of that id', async () => {
    await q.hold('a');
    const seq = Number(await q.admin.hget(q.key('worker'), 'seq'));
    await q.exchanged({ seq: seq + 1, settled: [completed('a')] });
    expect(await claimed({ seq: 2, claimSeq: seq + 2 })).not.toBeNull();
    expect(await q.admin.get(q.key('lane'))).toBe('2\n');
  });

  it('comes behind one that found a job which was there', async () => {
    await q.add('b');
    await q.claim(1, 'w2');
    await q.add('b');
    const seq = Number((await q.admin.get(q.key('lane')))!.split('\n', 1)[0]);
    const claimSeq = Number(await q.admin.hget(q.key('worker'), 'seq')) + 1;
    expect(await q.admin.get(q.key('lane'))).toBe(`${seq}\nb`);
    expect(await rememberingLonger(q, () => claimed({ seq, claimSeq }))).toBeNull();
    expect(await claimed({ seq: seq + 1, claimSeq })).not.toBeNull();
  });
});

describe('changes nothing', () => {
  const states: Record<string, () => Promise<unknown>> = {
    'another job waits': () => q.add('x'),
    'one with a priority waits': () => q.add(job('x', { priority: 3 })),
    'a suspect waits': () => q.admin.rpush(q.key('suspects'), 'x'),
    'the queue is paused': () => q.engine.admin.pause(QUEUE),
    'nobody knows the worker': () => q.admin.del(q.key('worker')),
    'a job of that id is delayed': () => q.add(job('a', { delayMs: 60_000 })),
    'another worker runs a job of that id': async () => {
      await q.add('a');
      await q.claim(1, 'w2');
    },
    'a job of that id is kept': async () => {
      await q.add('a');
      await q.claim(1, 'w2');
      await q.exchange({ worker: 'w2', settled: [kept('a', 60_000)] });
    },
    'somebody wrote the id among those it holds': () => q.admin.sadd(q.key('active'), 'a'),
  };
  it.each(Object.keys(states))('where %s', async (state) => {
    await states[state]!();
    const seq = 9;
    expect(await changingNothing(q, () => claimed({ seq }))).toBeNull();
  });

  it.each([1, 2])(
    'where the worker has made its exchange of this number, or a later one: %i',
    async (seq) => {
      await q.exchange({ seq: 2 });
      expect(await changingNothing(q, () => claimed({ claimSeq: seq }))).toBeNull();
    },
  );

  it.each([1, 2])('where the lane has made its call of this number, or a later one: %i', async (seq) => {
    await q.add('x');
    await q.add('y');
    await q.claim(2, 'w2');
    expect(await rememberingLonger(q, () => claimed({ seq }))).toBeNull();
  });

  it('where what the lane remembers cannot be read', async () => {
    await q.admin.set(q.key('lane'), 'not ours', 'PX', 10_000);
    expect(await claimed()).toBeNull();
    expect(await q.admin.get(q.key('lane'))).toBe('not ours');
    expect(await q.admin.exists(q.key('jobs'), q.key('active'), q.key('workers'))).toBe(0);
  });

  itRefusesWrongTypes(q, {
    keys: enqueueClaimed.keys,
    prepare: async () => () => claimed(),
    // That something is there keeps it from being claimed.
    except: ['events', 'wait', 'suspects', 'prioritized'],
  });

  it('but leaves a lease it had as long as a new one', async () => {
    await q.hold('x');
    const claimSeq = Number(await q.admin.hget(q.key('worker'), 'seq')) + 1;
    expect(await claimed({ seq: 1, claimSeq })).toBeNull();
    expect(await q.admin.smembers(q.key('active'))).toEqual(['x']);
    expect(await q.zset('workers')).toEqual([WORKER]);
  });
});

describe('the engine', () => {
  const idle = (claimSeq = 2) => {
    const answers: (ClaimAnswer | null)[] = [];
    const call: ExchangeCall = {
      worker: WORKER,
      seq: claimSeq,
      leaseMs: LEASE_MS,
      want: 10,
      maySuspect: true,
      settled: [],
    };
    let begun = 0;
    q.engine.claimAtAdd(QUEUE, {
      begin: () => (begun++ === 0 ? call : null),
      end: (_, answer) => void answers.push(answer),
    });
    return { answers, begun: () => begun };
  };
  const scripts = () => {
    const calls: string[] = [];
    const { store } = q.engine as unknown as { store: { call: (script: { name: string }) => unknown } };
    const call = store.call.bind(store);
    store.call = (...args) => {
      calls.push(args[0].name);
      return call(...args);
    };
    return calls;
  };

  it('makes one call of it for a plain job, and tells the worker', async () => {
    const calls = scripts();
    const { answers } = idle();
    await q.add('a');
    expect(calls).toEqual(['enqueue-claimed']);
    expect(answers).toEqual([
      {
        kind: 'claimed',
        claimed: [{ id: 'a', body: job('a').body, failed: 0, stalls: 0 }],
        held: null,
      },
    ]);
    // It is busy now.
    await q.add('b');
    expect(calls).toEqual(['enqueue-claimed', 'enqueue-plain']);
    expect(await q.list('wait')).toEqual(['b']);
  });

  it('makes it too where the server was told to forget its scripts', async () => {
    const { answers } = idle();
    await q.admin.script('FLUSH', 'SYNC');
    await q.add('a');
    expect(answers).toHaveLength(1);
    expect(await q.admin.smembers(q.key('active'))).toEqual(['a']);
  });

  it.each([
    ['several jobs', [job('a'), job('b')]],
    ['a delay', [job('a', { delayMs: 1_000 })]],
    ['a priority', [job('a', { priority: 1 })]],
  ])('does not ask the worker for %s', async (_, jobs) => {
    const { begun } = idle();
    await q.add(...jobs);
    expect(begun()).toBe(0);
  });

  it('puts the job in line where it cannot be claimed, and tells the worker so', async () => {
    await q.engine.admin.pause(QUEUE);
    const calls = scripts();
    const { answers } = idle();
    await q.add('a');
    expect(calls).toEqual(['enqueue-claimed', 'enqueue-plain']);
    expect(answers).toEqual([null]);
    expect(await q.list('wait')).toEqual(['a']);
  });

  it('holds back what is added behind a job until that one has gone its way', async () => {
    await q.engine.admin.pause(QUEUE);
    idle();
    const call = { seq: 1, rememberMs: 10_000, withinMs: 5_000 };
    const ways = [[job('b')], [job('c'), job('d')], [job('e', { priority: 1 }), job('f')]];
    await Promise.all([
      q.add('a'),
      ...ways.map((jobs, i) => q.engine.enqueue(QUEUE, { ...call, lane: `another ${i}`, jobs })),
    ]);
    expect(await q.list('wait')).toEqual(['a', 'b', 'c', 'd', 'f']);
  });

  it('holds back nothing any longer where the job could not be added', async () => {
    idle();
    await q.admin.set(q.key('active'), 'not ours');
    const call = { lane: 'another', seq: 1, rememberMs: 10_000, withinMs: 5_000, jobs: [job('b')] };
    const both = await Promise.allSettled([q.add('a'), q.engine.enqueue(QUEUE, call)]);
    expect(both.map(({ status }) => status)).toEqual(['rejected', 'fulfilled']);
    expect(await q.list('wait')).toEqual(['b']);
  });

  it('tells the worker where the call failed', async () => {
    const { answers } = idle();
    await q.admin.set(q.key('active'), 'not ours');
    await expect(q.add('a')).rejects.toMatchObject({ reply: 'WRONGTYPE' });
    expect(answers).toEqual([null]);
    expect(await q.admin.exists(q.key('jobs'))).toBe(0);
  });

  it('asks nobody where nobody claims any more', async () => {
    const { begun } = idle();
    q.engine.claimAtAdd(QUEUE, null);
    await q.add('a');
    expect(begun()).toBe(0);
    expect(await q.list('wait')).toEqual(['a']);
  });
});
