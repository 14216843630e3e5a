import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { Payload } from '../contender.js';
import type { Stand } from './proof.js';

const MODULE = fileURLToPath(new URL('./helper-process.js', import.meta.url));

/** How a separate worker process handles its jobs. */
export interface HelperOrder {
  readonly contender: string;
  readonly url: string;
  readonly concurrency: number;
  readonly leaseMs?: number;
  /** `hang`: never ends a job. `finish`: returns at once. */
  readonly does: 'hang' | 'finish';
}

export type HelperMessage = { readonly kind: 'open' } | { readonly kind: 'got'; readonly data: Payload };

/** A worker in a process of its own, which can be killed. */
export class Helper {
  private constructor(private readonly child: ChildProcess) {}

  /** Resolves when it works. */
  static async start(
    { contender, url }: Stand,
    order: Omit<HelperOrder, 'contender' | 'url'>,
    onJob: (data: Payload) => void = () => {},
  ): Promise<Helper> {
    const whole: HelperOrder = { contender: contender.name, url, ...order };
    const child = fork(MODULE, [JSON.stringify(whole)], { stdio: ['ignore', 2, 2, 'ipc'] });
    await new Promise<void>((resolve, reject) => {
      child.on('message', (message: HelperMessage) => {
        if (message.kind === 'open') resolve();
        else onJob(message.data);
      });
      child.once('exit', (code) => reject(new Error(`the worker process ended with code ${code}`)));
    });
    return new Helper(child);
  }

  /** Uses SIGKILL, so that it cannot give anything back. */
  async kill(): Promise<void> {
    const ended = once(this.child, 'exit');
    this.child.kill('SIGKILL');
    await ended;
  }
}
