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
        // The waits are about 0.5, 1, 2 and 4 seconds. For receivers that may be down for hours, use longer waits and more
        // attempts.
        backoff: { type: 'exponential', delay: '500ms', factor: 2, max: '10s', jitter: 0.2 },
        // Longer than the sender's own timeout: this ends an attempt that hangs elsewhere.
        timeout: '5s',
        // How long delivered webhooks can be looked up; dead ones are kept anyway.
        retention: '1h',
      },
      // Events that a page can still show if it is opened later.
      events: { max: 1_000 },
    }),
  ],
  controllers: [WebhooksController],
  providers: [AddressGuard, WebhookSender, DeliveryProcessor],
  exports: [AddressGuard],
})
export class WebhooksModule {}
