import { setTimeout as pause } from 'node:timers/promises';
import { getQueueToken, QUEUE_ENGINE, QueueModule, type ConnectionOption, type Queue } from '#lib/index.js';
import type { QueueEngine } from '#lib/engine/engine.js';
import { bootApp } from '../../support/app.js';
import { until } from '../../support/wait.js';
import { check, type Verdict } from '../../history/check.js';
import { callsOf, Recorder } from '../../history/recorder.js';
import { MixedClient } from './client.js';
import { MIXED, mixedQueues, SCHEDULE } from './queues.js';
import { MixedWorker } from './worker.js';

export interface ShortRun {
  readonly connection: ConnectionOption;
  readonly prefix: string;
  readonly seed: number;
  /** How long calls are made, in ms. */
  readonly ms: number;
  readonly leaseMs?: number;
  /** Makes the engine a worse one, before anything uses it. */
  readonly sabotage?: (engine: QueueEngine) => void;
  /** Happens while calls are made. */
  readonly meanwhile?: () => Promise<void>;
}

/** The mixed load of a chaos run in this one process, and what the checker says of its history. */
export async function shortRun(given: ShortRun): Promise<Verdict> {
  let lines = '';
  const recorder = new Recorder('p', (line) => (lines += line));
  const worker = new MixedWorker(recorder, 'p');
  const { connection, prefix, seed, ms, leaseMs = 8_000, sabotage, meanwhile } = given;
  const { app, get } = await bootApp({
    imports: [
      QueueModule.forRoot({ connection, prefix, lease: { duration: leaseMs }, autoStart: false }),
      ...mixedQueues(),
    ],
    providers: worker.processors(10),
  });
  const engine = get<QueueEngine>(QUEUE_ENGINE);
  sabotage?.(engine);
  worker.watch(engine);
  const { QueueRuntime } = await import('#lib/index.js');
  await get(QueueRuntime).start();
  const queues = new Map(MIXED.map((name) => [name, get<Queue>(getQueueToken(name))]));
  const client = new MixedClient(queues, recorder, 'c', seed);
  await client.schedule();
  const stop = new AbortController();
  const running = client.run(stop.signal, 8, 4);
  const batches = client.batch(12).then(() => client.batch(12));
  await Promise.all([pause(ms), meanwhile?.()]);
  stop.abort();
  await Promise.all([running, batches]);
  await drained(queues);
  const ids = new Set(
    callsOf(lines).flatMap(({ queue, id }) =>
      id === '' || id.startsWith(`${SCHEDULE}@`) ? [] : [`${queue} ${id}`],
    ),
  );
  await Promise.all([...ids].map((key) => client.look(...(key.split(' ') as [string, string]))));
  await app.close();
  return check(callsOf(lines));
}

/** Ends schedules and pauses, and waits until nothing waits or runs any more. */
async function drained(queues: ReadonlyMap<string, Queue>): Promise<void> {
  for (const queue of queues.values()) {
    await queue.schedules.remove(SCHEDULE);
    await queue.resume();
  }
  const isEmpty = async () => {
    for (const queue of queues.values()) {
      const { waiting, delayed, active } = await queue.counts();
      if (waiting + delayed + active > 0) return false;
    }
    return true;
  };
  await until(isEmpty, { timeout: 20_000, what: 'the mixed queues are empty' });
}
