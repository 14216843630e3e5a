import { Processor, WorkerHost } from '@nestjs/bullmq';
import type { Job } from 'bullmq';
import { InjectQueue, type Queue } from 'godwit';
import { handOn } from './hand-on.js';

const ONE_DAY = 86_400_000;

/**
 * Replaces the old processor while the old queue runs dry: it adds each due job to the new queue under the same id. A job that BullMQ runs
 * twice is added once. A job that cannot be added fails in the old queue.
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
