import { Module } from '@nestjs/common';
import { WebhooksModule } from '../webhooks/webhooks.module.js';
import { Behaviours } from './behaviours.js';
import { ExamplesController } from './examples.controller.js';
import { Receiver } from './receiver.js';

@Module({
  imports: [WebhooksModule],
  controllers: [ExamplesController],
  providers: [Receiver, Behaviours],
})
export class ReceiverModule {}
