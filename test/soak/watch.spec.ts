import { describe, expect, it } from 'vitest';
import type { Job } from '#lib/job/job.js';
import type { QueueEvent } from '#lib/events/queue-event.js';
import type { QueuePlan } from './plan.js';
import { Replay, sharedNow, type SeenJob } from './replay.js';
import { QueueFullError } from '#lib/errors.js';
import { OBLITERATED, Watch } from './watch.js';

const QUEUE: QueuePlan = { name: 'q', order: 'none', batch: null };

function watchOf(queue: Partial<QueuePlan> = {}) {
  const queues = [{ ...QUEUE, ...queue }];
  const watch = new Watch({
    seed: 1,
    shared: { api: { concurrency: 1, rate: { max: 2, per: 100, window: 'sliding' } } },
    queues,
    apps: [],
    acts: 0,
    paceMs: 0,
  });
  const job = (id: string, more: Partial<Job> = {}) =>
    ({
      queue: 'q',
      id,
      name: 'first',
      group: null,
      ...more,
      data: { n: id, ...(more.data as object) },
    }) as Job;
  let at = 1_000;
  const says = (id: string, ...types: string[]) => {
    for (const type of types)
      watch.event({ type, queue: 'q', jobId: id, name: 'first', at: new Date(at++) } as QueueEvent);
  };
  return { watch, job, says };
}

describe('the checks of a run', () => {
  it('find nothing if each job runs alone and ends once', () => {
    const { watch, job, says } = watchOf({ limits: { concurrency: 1 }, uses: ['api'] });
    for (const id of ['a', 'b']) {
      watch.added('q', id);
      watch.begins(job(id));
      watch.ends(job(id));
      says(id, 'added', 'active', 'completed');
      watch.recordOf('q', id).received.push('completed');
    }
    expect([...watch.faults, ...watch.faultsOfEnds()]).toEqual([]);
  });

  it('find a job that runs twice at once, or with old data', () => {
    const { watch, job } = watchOf();
    watch.begins(job('a'));
    watch.begins(job('a'));
    watch.revised('q', 'b', 2);
    watch.begins(job('b', { data: { n: 1, revision: 1 } }));
    expect(watch.faults).toEqual([
      'q a runs twice at once',
      'q b has old data: 1, changed to 2 before it began',
    ]);
  });

  it('find workers that make many more calls than jobs start', () => {
    const { watch, job } = watchOf();
    for (const at of [1_000, 2_000]) for (let i = 0; i < 500; i++) watch.exchanges('q', at);
    expect(watch.faults).toEqual([]);
    watch.begins(job('a'));
    for (let i = 0; i < 20; i++) watch.exchanges('q', 2_999);
    expect(watch.faults).toEqual([]);
    watch.exchanges('q', 2_999);
    expect(watch.faults).toEqual(['q: the workers make 521 calls in a second with 1 starts']);
  });

  it.each([
    [['active'], 'is claimed while it is gone'],
    [['added', 'active', 'active'], 'is claimed while it runs'],
    [['added', 'retrying'], 'is retrying, but does not run'],
    [['added', 'active', 'released', 'completed'], 'is completed, but did not run'],
    [['added', 'active', 'completed', 'dead'], 'is dead, but was gone'],
    [['added', 'active', 'completed', 'added', 'active', 'dead', 'removed'], null],
  ])('find events that do not follow each other: %j', (types, fault) => {
    const { watch, says } = watchOf();
    says('a', ...types);
    expect(watch.faults).toEqual(fault === null ? [] : [`q a ${fault}`]);
  });

  it.each<[string, Partial<QueuePlan>, Partial<Job>]>([
    ['queue q', { limits: { concurrency: 1 } }, {}],
    ['name q first', { limits: { names: { first: { concurrency: 1 } } } }, {}],
    ['group q g1', { order: 'fair', groups: { concurrency: 1 } }, { group: 'g1' }],
    ['group q g1', { order: 'strict', groups: { order: 'strict' } }, { group: 'g1' }],
    ['shared api', { uses: ['api'] }, {}],
    ['unique q first k', {}, { data: { key: 'k' } }],
  ])('find that a limit is passed: %s', (limit, queue, more) => {
    const { watch, job } = watchOf(queue);
    watch.begins(job('a', more));
    watch.begins(job('b', more));
    expect(watch.faults).toEqual([`2 of 1 run at once: ${limit}`]);
  });

  it('find a job of a strict group that starts after a later one', () => {
    const { watch, job } = watchOf({ order: 'strict', groups: { order: 'strict' } });
    for (const n of [1, 0]) {
      const one = job(`job-${n}`, { group: 'g1', data: { n } });
      watch.begins(one);
      watch.ends(one);
    }
    expect(watch.faults).toEqual(['q job-0 of group g1 starts after a later job (0 after 1)']);
  });

  it('find a job that has not ended, or still runs, an add without a job, and an end that only @OnJob received', () => {
    const { watch, job, says } = watchOf();
    watch.added('q', 'open');
    says('open', 'added');
    watch.added('q', 'lost');
    watch.begins(job('runs'));
    watch.recordOf('q', 'received').received.push('dead');
    expect(watch.faultsOfEnds()).toEqual([
      'q open has not ended',
      'q lost was added 1 times, events are of 0',
      'q runs still runs',
      'q received: @OnJob received dead, events are ',
    ]);
  });

  it.each([
    ['sliding', 2, []],
    ['sliding', 3, ['claims cost 3 within 2 ms, 2 in 100 are allowed: queue q']],
    ['fixed', 4, []],
    ['fixed', 5, ['claims cost 5 within 4 ms, 4 in 100 are allowed: queue q']],
  ] as const)('find that a rate is passed: %s window, %i claims', (window, count, faults) => {
    const { watch, says } = watchOf({ limits: { rate: { max: 2, per: 100, window } } });
    const ids = Array.from({ length: count }, (_, i) => `job-${i}`);
    for (const id of ids) says(id, 'added');
    for (const id of ids) says(id, 'active');
    expect(watch.faultsOfEnds().filter((fault) => fault.includes('claims'))).toEqual(faults);
  });

  it.each([
    ['sliding', 2, ['claims cost 3 within 1 ms, 2 in 100 are allowed: queue q']],
    // The handler of one corrects its cost.
    ['sliding', 1, []],
    ['bucket', 5, []],
  ] as const)('find that costs pass a rate: %s window, %i and 1', (window, cost, faults) => {
    const { watch, says } = watchOf({ limits: { rate: { max: 2, per: 100, window } } });
    watch.added('q', 'a', null, 2);
    watch.costs('q', 'a', cost);
    watch.added('q', 'b');
    says('a', 'added');
    says('b', 'added');
    says('a', 'active');
    says('b', 'active');
    expect(watch.faultsOfEnds().filter((fault) => fault.includes('claims'))).toEqual(faults);
  });

  it.each([
    [0, 2, []],
    [0, 3, ['claims cost 3 within 2 ms, 2 in 100 are allowed: shared api']],
    [40, 4, []],
    [40, 5, ['claims cost 5 within 4 ms, 4 in 100 are allowed: shared api']],
  ])(
    'find that the rate of a shared limit is passed: claims up to %i ms late, %i of them',
    (late, count, faults) => {
      const { watch, says } = watchOf({ uses: ['api'] });
      watch.longestClaimMs = late;
      const ids = Array.from({ length: count }, (_, i) => `job-${i}`);
      for (const id of ids) says(id, 'added');
      for (const id of ids) says(id, 'active');
      expect(watch.faultsOfEnds().filter((fault) => fault.includes('claims'))).toEqual(faults);
    },
  );

  it('find more places of a shared limit than there are, unless it was changed', () => {
    const { watch } = watchOf();
    watch.taken('api', 1);
    watch.taken('api', 2);
    watch.allow('shared api', 3);
    watch.taken('api', 3);
    expect(watch.faults).toEqual(['2 of 1 places are taken: shared api']);
  });

  it('find an add that made two jobs, except those of a schedule', () => {
    const { watch, job } = watchOf();
    for (const id of ['a', 'b']) watch.begins(job(id, { data: { n: 0 } }));
    for (const id of ['s1@1', 's1@2']) watch.begins(job(id, { data: { n: 2 } }));
    expect(watch.faults).toEqual(['q 0 was added twice: as a and b']);
  });

  it('find an add that waits for room without end, or is refused', async () => {
    const { watch } = watchOf();
    await watch.waits('q', Promise.resolve());
    await expect(watch.waits('q', new Promise(() => {}), 1)).rejects.toThrow('an add finds room in q');
    const refused = watch.waits('q', Promise.reject(new QueueFullError('q', 1, 1)));
    await expect(refused).rejects.toThrow(QueueFullError);
    expect(watch.faults).toEqual([expect.stringContaining('an add to q was refused')]);
  });

  it('forget the jobs of an obliterated queue, and find one of them that still runs', () => {
    const { watch, job, says } = watchOf();
    for (const id of ['a', 'b', 'runs']) watch.added('q', id);
    watch.begins(job('runs'));
    says('b', 'added');
    watch.event({ type: 'published', queue: 'q', name: OBLITERATED } as QueueEvent);
    expect(watch.faultsOfEnds()).toEqual(['q runs still runs']);
    says('b', 'active');
    watch.added('q', 'new');
    expect(watch.faults).toEqual(['q b is claimed while it is gone']);
    expect(watch.faultsOfEnds()).toContain('q new was added 1 times, events are of 0');
  });

  it('find a job that its schedule has not added', () => {
    const { watch, says } = watchOf();
    says('s1@2026-11-27T07:00:00.000Z', 'added', 'removed');
    // Added with `runNow`.
    says('s1@0mwyo57maef68ca000W', 'added', 'removed');
    watch.scheduled('q', 's1', 2);
    expect(watch.faultsOfEnds()).toEqual(['q s1@ has added 2 jobs, events are of 1']);
  });
});

describe('the reports of other processes', () => {
  function replayOf() {
    const { watch, job } = watchOf({ limits: { concurrency: 1 } });
    const replay = new Replay(watch);
    const begins = (pid: number, run: number, at: number, id: string) =>
      replay.report(pid, { kind: 'begins', run, at, job: job(id) as SeenJob });
    const ends = (pid: number, run: number, at: number) => replay.report(pid, { kind: 'ends', run, at });
    return { watch, replay, begins, ends };
  }

  it('are put in the order of time', () => {
    const { watch, replay, begins, ends } = replayOf();
    begins(2, 1, 30, 'b');
    begins(1, 1, 10, 'a');
    ends(1, 1, 20);
    replay.play();
    expect(watch.faults).toEqual([]);
  });

  it('find a limit that is passed by two processes', () => {
    const { watch, replay, begins, ends } = replayOf();
    begins(1, 1, 10, 'a');
    begins(2, 1, 15, 'b');
    ends(1, 1, 20);
    replay.play();
    expect(watch.faults).toEqual(['2 of 1 run at once: queue q']);
  });

  it('end the runs of a process that is killed, and only those', () => {
    const { watch, replay, begins } = replayOf();
    begins(1, 1, 10, 'a');
    replay.killed(1, 20);
    begins(2, 1, 30, 'a');
    replay.killed(3, 40);
    begins(1, 2, 50, 'a');
    replay.play();
    expect(watch.faults).toEqual(['q a runs twice at once', '2 of 1 run at once: queue q']);
  });

  it('end the run of a worker that has lost its lease', () => {
    const { watch, replay, begins } = replayOf();
    const now = sharedNow();
    begins(1, 1, now - 5_000, 'a');
    replay.event({
      type: 'stalled',
      queue: 'q',
      jobId: 'a',
      at: new Date(Date.now() - 2_000),
    } as QueueEvent);
    begins(2, 1, now, 'a');
    replay.play();
    expect(watch.faults).toEqual([]);
  });
});
