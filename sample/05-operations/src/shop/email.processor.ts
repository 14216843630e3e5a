import { setTimeout as pause } from 'node:timers/promises';
import { Handle, type Job, Processor, UnrecoverableError } from 'godwit';

interface Mail {
  readonly to: string;
  readonly order: number;
}

@Processor('emails', { concurrency: 20 })
export class EmailProcessor {
  @Handle('receipt')
  receipt(job: Job<Mail>) {
    return this.send(job);
  }

  @Handle('digest')
  digest(job: Job<Mail>) {
    return this.send(job);
  }

  private async send({ data, signal }: Job<Mail>): Promise<void> {
    await pause(20 + Math.random() * 180, undefined, { signal });
    if (!data.to.includes('@'))
      throw new UnrecoverableError(`${data.to} is no address of order ${data.order}`);
    // Now and then the mail server is busy; one customer has a full mailbox.
    if (Math.random() < 0.04) throw new Error(`421 too many connections from worker ${process.pid}`);
    if (data.to.startsWith('full@')) throw new Error(`452 mailbox of ${data.to} is full`);
  }
}
