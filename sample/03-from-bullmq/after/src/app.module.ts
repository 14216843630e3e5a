import { Module } from '@nestjs/common';
import { QueueModule } from 'godwit';
import { AudioModule } from './audio/audio.module.js';

@Module({
  imports: [
    QueueModule.forRootAsync({
      useFactory: () => ({
        connection: process.env.REDIS_URL ?? 'redis://localhost:6379',
        prefix: process.env.QUEUE_PREFIX ?? 'sample-audio',
      }),
    }),
    AudioModule,
  ],
})
export class AppModule {}
