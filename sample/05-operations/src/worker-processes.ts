import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import type { OnApplicationBootstrap, OnApplicationShutdown } from '@nestjs/common';

/** Two processes that only work. When the application stops, it waits until they have finished their jobs. */
export class WorkerProcesses implements OnApplicationBootstrap, OnApplicationShutdown {
  private workers: ChildProcess[] = [];

  /** @param probesPort port of the first for probes and metrics; the second has the next one. 0: free ones. */
  constructor(
    private readonly file: string,
    private readonly probesPort = 0,
  ) {}

  onApplicationBootstrap(): void {
    this.workers = [0, 1].map((n) => {
      const port = this.probesPort === 0 ? 0 : this.probesPort + n;
      return fork(this.file, { env: { ...process.env, PROBES_PORT: String(port) } });
    });
    // After an uncaught error, Nest calls no hooks.
    process.on('exit', this.end);
  }

  async onApplicationShutdown(): Promise<void> {
    const exits = this.workers.filter(isRunning).map((worker) => once(worker, 'exit'));
    this.end();
    await Promise.all(exits);
    process.off('exit', this.end);
  }

  private readonly end = (): void => this.workers.forEach((worker) => worker.kill());
}

function isRunning({ exitCode, signalCode }: ChildProcess): boolean {
  return exitCode === null && signalCode === null;
}
