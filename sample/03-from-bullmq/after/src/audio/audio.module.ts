import { Module } from '@nestjs/common';
import { QueueModule } from 'godwit';
import { AudioController } from './audio.controller.js';
import { AudioListener } from './audio.listener.js';
import { AudioProcessor } from './audio.processor.js';
import { Transcoder } from './transcoder.js';

@Module({
  imports: [
    QueueModule.registerQueue({
      name: 'audio',
      defaults: {
        attempts: 3,
        backoff: { type: 'exponential', delay: '1s' },
      },
    }),
  ],
  controllers: [AudioController],
  providers: [AudioProcessor, AudioListener, Transcoder],
})
export class AudioModule {}
