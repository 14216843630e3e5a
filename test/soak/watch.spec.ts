import { describe, expect, it } from 'vitest';
import type { Job } from '#lib/job/job.js';
import type { QueueEvent } from '#lib/events/queue-event.js';
import type { QueuePlan } from './plan.js';
import { Watch } from './watch.js';

const QUEUE: QueuePlan = { name: 'q', order: 'none', batch: null };

function watchOf(queue: Partial<QueuePlan> = {}) {
  const queues = [{ ...QUEUE, ...queue }];
  const watch = new Watch({ seed: 1, shared: { api: { concurrency: 1 } }, queues, apps: [], acts: 0 });
  const job = (id: string, more: Partial<Job> = {}) =>
    ({ queue: 'q', id, name: 'first', group: null, data: { n: 0 }, ...more }) as Job;
  const ended = (id: string, type: 'completed' | 'dead' | 'removed' | 'cancelled') =>
    watch.event({ type, queue: 'q', jobId: id } as QueueEvent);
  return { watch, job, ended };
}

describe('the checks of a run', () => {
  it('find nothing if each job runs alone and ends once', () => {
    const { watch, job, ended } = watchOf({ limits: { concurrency: 1 }, uses: ['api'] });
    for (const id of ['a', 'b']) {
      watch.added('q', id);
      watch.begins(job(id));
      watch.ends(job(id));
      ended(id, 'completed');
      watch.recordOf('q', id).received.push('completed');
    }
    expect([...watch.faults, ...watch.faultsOfEnds()]).toEqual([]);
  });

  it('find a job that runs twice at once, or after its end', () => {
    const { watch, job, ended } = watchOf();
    watch.begins(job('a'));
    watch.begins(job('a'));
    ended('b', 'completed');
    watch.begins(job('b'));
    expect(watch.faults).toEqual(['q a runs twice at once', 'q b starts after completed']);
  });

  it.each<[string, Partial<QueuePlan>, Partial<Job>]>([
    ['queue q', { limits: { concurrency: 1 } }, {}],
    ['name q first', { limits: { names: { first: { concurrency: 1 } } } }, {}],
    ['group q g1', { order: 'fair', groups: { concurrency: 1 } }, { group: 'g1' }],
    ['group q g1', { order: 'strict', groups: { order: 'strict' } }, { group: 'g1' }],
    ['shared api', { uses: ['api'] }, {}],
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

  it('find a job that ended twice, has not ended, or still runs, and an end that only @OnJob received', () => {
    const { watch, job, ended } = watchOf();
    for (const type of ['completed', 'dead'] as const) ended('twice', type);
    for (const type of ['dead', 'dead', 'completed', 'removed'] as const) ended('retried', type);
    watch.added('q', 'open');
    watch.begins(job('runs'));
    watch.recordOf('q', 'received').received.push('dead');
    expect(watch.faultsOfEnds()).toEqual([
      'q twice ended as completed, dead',
      'q open has not ended',
      'q runs still runs',
      'q received: @OnJob received dead, events are ',
    ]);
  });
});
