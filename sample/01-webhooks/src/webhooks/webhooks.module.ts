import { Module } from '@nestjs/common';
import { QueueModule } from 'godwit';
import { AddressGuard } from './address-guard.js';
import { DeliveryProcessor } from './delivery.processor.js';
import { QUEUE } from './webhook.js';
import { WebhookSender } from './webhook-sender.js';
import { WebhooksController } from './webhooks.controller.js';

@Module({
  imports: [
    QueueModule.registerQueue({
      name: QUEUE,
      defaults: {
        attempts: 5,
        // About half a second, one, two, four. For receivers that may be down for hours, begin later and allow more.
        backoff: { type: 'exponential', delay: '500ms', factor: 2, max: '10s', jitter: 0.2 },
        // Above the sender's own limit: the last resort should an attempt hang elsewhere.
        timeout: '5s',
        // Delivered ones can be asked for this long; dead ones are kept for a person anyway.
        retention: '1h',
      },
      // What a page that is opened later can still be told.
      events: { max: 1_000 },
    }),
  ],
  controllers: [WebhooksController],
  providers: [AddressGuard, WebhookSender, DeliveryProcessor],
  exports: [AddressGuard],
})
export class WebhooksModule {}
