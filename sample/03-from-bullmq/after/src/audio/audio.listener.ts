import { Injectable, Logger } from '@nestjs/common';
import { QueueEvents } from 'godwit';

@Injectable()
export class AudioListener {
  private readonly logger = new Logger(AudioListener.name);

  constructor(events: QueueEvents) {
    events.of('audio').subscribe((event) => {
      if (event.type === 'completed') this.logger.log(`Job ${event.jobId} completed`);
      if (event.type === 'dead') this.logger.error(`Job ${event.jobId} failed: ${event.error?.message}`);
    });
  }
}
