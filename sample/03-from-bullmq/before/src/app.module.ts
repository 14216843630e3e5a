import { BullModule } from '@nestjs/bullmq';
import { Module } from '@nestjs/common';
import { AudioModule } from './audio/audio.module.js';

@Module({
  imports: [
    BullModule.forRootAsync({
      useFactory: () => ({
        connection: { url: process.env.REDIS_URL ?? 'redis://localhost:6379' },
        prefix: process.env.QUEUE_PREFIX ?? 'bull',
      }),
    }),
    AudioModule,
  ],
})
export class AppModule {}
