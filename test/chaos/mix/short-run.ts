import {
  getQueueToken,
  QUEUE_ENGINE,
  QueueModule,
  QueueRuntime,
  type ConnectionOption,
  type Queue,
} from '#lib/index.js';
import type { QueueEngine } from '#lib/contract/engine.js';
import { bootApp, type BootedApp } from '../../support/app.js';
import { check, type Verdict } from '../../history/check.js';
import { callsOf, Recorder } from '../../history/recorder.js';
import { MixedClient } from './client.js';
import { drained } from './drain.js';
import { MIXED, mixedQueues } from './queues.js';
import { MixedWorker } from './worker.js';

interface ShortRun {
  /** Of each of the applications that work; the last one also adds. */
  readonly connections: readonly ConnectionOption[];
  readonly prefix: string;
  readonly seed: number;
  readonly calls: number;
  readonly leaseMs?: number;
  /** Makes the engine a worse one, before anything uses it. */
  readonly sabotage?: (engine: QueueEngine) => void;
  /** Happens while calls are made; the run lasts as long as it does. */
  readonly meanwhile?: () => Promise<void>;
  /** How long the queues may take to become empty, in ms. */
  readonly drainMs?: number;
}

/** The mixed load of a chaos run in this one process, and what the checker says of its history. */
export async function shortRun(given: ShortRun): Promise<Verdict> {
  const { connections, seed, calls, meanwhile, drainMs = 20_000 } = given;
  const written: string[] = [];
  const recorderOf = (name: string) => {
    const at = written.push('') - 1;
    return new Recorder(name, (line) => (written[at] += line));
  };
  const history = () => written.flatMap(callsOf).toSorted((a, b) => a.start - b.start);
  const apps: BootedApp[] = [];
  for (const [i, connection] of connections.entries())
    apps.push(await startApp(given, connection, `w${i}`, recorderOf(`w${i}`)));
  const { get } = apps.at(-1)!;
  const queues = new Map(MIXED.map((name) => [name, get<Queue>(getQueueToken(name))]));
  const client = new MixedClient(queues, recorderOf('c'), 'c', seed);
  await client.schedule();
  // Where several work, the order in which jobs begin is not that of their claims.
  const batches = connections.length === 1 ? client.batch(12).then(() => client.batch(12)) : undefined;
  await Promise.all([client.run(calls), batches, meanwhile?.()]);
  await drained(queues, drainMs);
  await client.lookAtAll(history());
  await Promise.all(apps.map((app) => app.close()));
  return check(history());
}

async function startApp(
  { prefix, leaseMs = 8_000, sabotage }: ShortRun,
  connection: ConnectionOption,
  name: string,
  recorder: Recorder,
): Promise<BootedApp> {
  const worker = new MixedWorker(recorder, name);
  const app = await bootApp({
    imports: [
      QueueModule.forRoot({ connection, prefix, lease: { duration: leaseMs }, autoStart: false }),
      ...mixedQueues(),
    ],
    providers: worker.processors(10),
  });
  const engine = app.get<QueueEngine>(QUEUE_ENGINE);
  sabotage?.(engine);
  worker.watch(engine);
  await app.get(QueueRuntime).start();
  return app;
}
