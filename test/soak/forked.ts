import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { Random } from '../chaos/random.js';
import { atEnd } from '../support/cleanup.js';
import { within } from '../support/wait.js';
import type { ChildPlan } from './child.js';
import type { AppPlan } from './plan.js';
import { sharedNow, type Replay, type Report } from './replay.js';
import type { Host, Stage } from './soak-app.js';

const CHILD = fileURLToPath(new URL('child.ts', import.meta.url));
const STARTS = { timeout: 60_000, what: 'the process is up' } as const;
const STOPS = { timeout: 30_000, what: 'the process has stopped' } as const;

/** Starts worker processes that are killed in the middle of a run, mostly. */
export function forking(replay: Replay, seed: number) {
  const random = new Random(seed ^ 0x2545f491);
  return (stage: Stage, app: AppPlan): Host => {
    const child = forked(stage, app);
    const { pid } = child;
    const exited = once(child, 'exit') as Promise<[number | null, NodeJS.Signals | null]>;
    let output = '';
    let isKilled = false;
    child.stderr!.on('data', (text) => (output += String(text)));
    void exited.then(([code, signal]) => {
      if (!isKilled && code !== 0)
        stage.watch.fault(`a process ended with ${signal ?? `code ${code}`}: ${output}`);
    });
    const isUp = within(
      new Promise<void>((resolve) =>
        child.on('message', (report: Report) => {
          if (report.kind === 'ready') resolve();
          replay.report(pid!, report);
        }),
      ),
      STARTS,
    );
    const close = async () => {
      await isUp;
      child.kill('SIGTERM');
      await within(exited, STOPS);
    };
    const kill = async () => {
      await isUp;
      const at = sharedNow();
      isKilled = true;
      child.kill('SIGKILL');
      await within(exited, STOPS);
      replay.killed(pid!, at);
    };
    return { app: null, isUp, close, end: () => (random.next() < 0.8 ? kill() : close()) };
  };
}

function forked({ redis, plan }: Stage, app: AppPlan): ChildProcess {
  const childPlan: ChildPlan = { plan, app, connection: redis.url, prefix: redis.prefix };
  const child = fork(CHILD, {
    env: { ...process.env, SOAK: JSON.stringify(childPlan) },
    execArgv: ['--import', fileURLToPath(new URL('../../tools/typescript.mjs', import.meta.url))],
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
  });
  atEnd(() => void child.kill('SIGKILL'));
  return child;
}
