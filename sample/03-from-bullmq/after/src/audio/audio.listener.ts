import { Injectable, Logger } from '@nestjs/common';
import { type EventOf, OnQueueEvent } from 'godwit';

@Injectable()
export class AudioListener {
  private readonly logger = new Logger(AudioListener.name);

  @OnQueueEvent('completed', { queue: 'audio' })
  onCompleted({ jobId }: EventOf<'completed'>) {
    this.logger.log(`Job ${jobId} completed`);
  }

  @OnQueueEvent('dead', { queue: 'audio' })
  onDead({ jobId, error }: EventOf<'dead'>) {
    this.logger.error(`Job ${jobId} failed: ${error?.message}`);
  }
}
