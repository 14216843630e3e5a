import { Processor, WorkerHost } from '@nestjs/bullmq';
import type { Job } from 'bullmq';
import { InjectQueue, type Queue } from 'godwit';
import { handOn } from './hand-on.js';

const ONE_DAY = 86_400_000;

/**
 * Stands in for the old processor while the old queue runs dry: instead of doing the work it hands each job on, once it is due, under
 * the id it has. What BullMQ runs twice is still one job here. What cannot be handed on ends failed in the old queue.
 */
@Processor('audio', { concurrency: 50 })
export class ForwardProcessor extends WorkerHost {
  constructor(@InjectQueue('audio') private readonly audio: Queue) {
    super();
  }

  override async process(job: Job): Promise<void> {
    await handOn(job, 'waiting', this.audio, ONE_DAY);
  }
}
