import { Controller, Get } from '@nestjs/common';
import type { Webhook } from '../webhooks/webhook.js';
import { Receiver } from './receiver.js';

/** A webhook to try, and its expected outcome. */
export interface Example {
  readonly title: string;
  readonly says: string;
  /** The API refuses this webhook. */
  readonly refused?: boolean;
  readonly webhook: Webhook;
}

@Controller('examples')
export class ExamplesController {
  constructor(private readonly receiver: Receiver) {}

  @Get()
  list(): Example[] {
    const { url } = this.receiver;
    return [
      {
        title: 'Works',
        says: 'Answers 200 at once',
        webhook: {
          url: `${url}/ok`,
          event: 'order.paid',
          body: { order: 'A-1042', total: '48.90', currency: 'EUR' },
        },
      },
      {
        title: 'Slow',
        says: 'Answers 200 after 1.5 s',
        webhook: {
          url: `${url}/slow?ms=1500`,
          event: 'report.ready',
          body: { report: 'sales', month: '2026-10' },
        },
      },
      {
        title: 'Flaky',
        says: '500 twice, then 200',
        webhook: {
          url: `${url}/flaky?fail=2`,
          event: 'invoice.created',
          body: { invoice: 'R-77', lines: 3 },
        },
      },
      {
        title: 'Gone',
        says: '410: never asked again',
        webhook: { url: `${url}/gone`, event: 'user.deleted', body: { user: 'u_9f2' } },
      },
      {
        title: 'Down',
        says: '503 each time, until it is dead',
        webhook: {
          url: `${url}/down`,
          event: 'payment.failed',
          body: { payment: 'p_31', reason: 'card_declined' },
        },
      },
      {
        title: 'Hangs',
        says: 'Accepts, never answers',
        webhook: { url: `${url}/hang`, event: 'parcel.delayed', body: { parcel: 'Z-5', hours: 36 } },
      },
      {
        title: 'Moved',
        says: '302: redirects are not followed',
        webhook: { url: `${url}/moved`, event: 'stock.low', body: { sku: 'tea-250', left: 4 } },
      },
      {
        title: 'Forbidden',
        says: 'Private address: refused',
        refused: true,
        webhook: { url: 'http://169.254.169.254/latest/meta-data/', event: 'secrets.please', body: {} },
      },
    ];
  }
}
