import { BullModule } from '@nestjs/bullmq';
import { Module } from '@nestjs/common';
import { AudioController } from './audio.controller.js';
import { AudioListener } from './audio.listener.js';
import { AudioProcessor } from './audio.processor.js';
import { Transcoder } from './transcoder.js';

@Module({
  imports: [
    BullModule.registerQueue({
      name: 'audio',
      defaultJobOptions: {
        attempts: 3,
        backoff: { type: 'exponential', delay: 1_000 },
        removeOnComplete: true,
        removeOnFail: 10_000,
      },
    }),
  ],
  controllers: [AudioController],
  providers: [AudioProcessor, AudioListener, Transcoder],
})
export class AudioModule {}
