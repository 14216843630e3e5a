import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import type { OnApplicationBootstrap, OnApplicationShutdown } from '@nestjs/common';

/** Two processes that only work. When the application stops, it waits until they have finished their jobs. */
export class WorkerProcesses implements OnApplicationBootstrap, OnApplicationShutdown {
  private workers: ChildProcess[] = [];

  constructor(private readonly file: string) {}

  onApplicationBootstrap(): void {
    this.workers = [fork(this.file), fork(this.file)];
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
