import type { IncomingMessage } from 'node:http';
import { describe, expect, it } from 'vitest';
import type { WorkerInfo } from '#lib/inspect/queue-inspector.js';
import { measure, type AlertSource } from '#lib/subpaths/alerts/measure.js';
import { checkAlertsOptions } from '#lib/subpaths/alerts/queue-alerts.js';
import { scaleRoute } from '#lib/subpaths/probes/scale.js';

const process = (state: WorkerInfo['state'], { running = 0, paused = false } = {}): WorkerInfo => {
  const job = { queue: 'work', id: 'a', name: 'a', attempt: 1, since: new Date() };
  const jobs = Array.from({ length: running }, () => job);
  const pausedQueues = paused ? ['work'] : [];
  const pool = {
    queues: ['work'],
    paused: pausedQueues,
    quiet: [],
    concurrency: 4,
    workers: [],
    running,
    jobs,
  };
  return { state, pools: [pool] } as unknown as WorkerInfo;
};
const infoOf = (waiting: number, active: number) => ({
  name: 'work',
  counts: { waiting, active, delayed: 0, completed: 0, dead: 0, cancelled: 0 },
  paused: false,
  oldestWaitingMs: null,
});

describe('noWorkers', () => {
  const { rules } = checkAlertsOptions({ rules: [{ rule: 'noWorkers' }], notify: () => undefined }, 'test');
  const valueOf = async (counts: [waiting: number, active: number], ...workers: WorkerInfo[]) => {
    const found = { queues: [infoOf(...counts)], faults: new Map() };
    const inspector = { readableQueues: async () => found, workers: async () => workers };
    const { readings } = await measure(
      { inspector, engine: { now: () => 0 } } as unknown as AlertSource,
      rules,
      {},
    );
    return readings[0]!.value;
  };

  it('waits 30 s by default, so that a restart of all workers is no alert', () => {
    expect(rules[0]!.forMs).toBe(30_000);
    const at0 = { rules: [{ rule: 'noWorkers', for: 0 }, { rule: 'paused' }], notify: () => undefined };
    expect(checkAlertsOptions(at0, 'test').rules.map(({ forMs }) => forMs)).toEqual([0, 0]);
  });

  it('fires if all processes stop or have paused the queue, and jobs wait', async () => {
    const [running, draining] = [process('running'), process('draining')];
    const paused = process('paused', { paused: true });
    expect(await valueOf([1, 0])).toBe(1);
    expect(await valueOf([1, 0], draining, paused)).toBe(1);
    expect(await valueOf([1, 0], draining, paused, running)).toBe(0);
    expect(await valueOf([0, 0], draining)).toBe(0);
  });

  it('does not fire while a process that stops or is paused ends its last jobs', async () => {
    expect(await valueOf([0, 1], process('draining', { running: 1 }))).toBe(0);
    expect(await valueOf([0, 1], process('paused', { running: 1, paused: true }))).toBe(0);
    expect(await valueOf([0, 1])).toBe(1);
  });
});

it('/scale leaves out processes that stop, and their jobs', async () => {
  const workers = [process('running', { running: 3 }), process('draining', { running: 4 })];
  const inspector = { queues: async () => [infoOf(2, 7)], workers: async () => workers };
  const route = scaleRoute(inspector, undefined);
  const answer = await route('/scale/work', {} as IncomingMessage, new URLSearchParams());
  expect(answer!.body).toMatchObject({ backlog: 5, active: 7, processes: 1, slots: 4, wanted: 2 });
});
