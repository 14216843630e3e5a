import { Module } from '@nestjs/common';
import { QueueModule } from 'godwit';
import { ChoresProcessor } from './chores.processor.js';
import { CHORES } from './chores.js';

@Module({
  imports: [
    QueueModule.registerQueue({
      name: CHORES,
      // A run that failed is tried once more; the next occurrence comes anyway.
      defaults: { attempts: 2, backoff: '1s' },
      // Events that a page can still show if it is opened later.
      events: { max: 1_000 },
    }),
  ],
  providers: [ChoresProcessor],
  exports: [QueueModule],
})
export class ChoresModule {}
