import type { ServerResponse } from 'node:http';
import {
  Body,
  Controller,
  Get,
  Headers,
  HttpCode,
  type MessageEvent,
  Param,
  Post,
  Query,
  Res,
  Sse,
  StandardSchemaValidationPipe,
  UseFilters,
  UsePipes,
} from '@nestjs/common';
import { InjectQueue, JobNotFoundError, type Queue, QueueEvents, QueueProducer } from 'godwit';
import { map, type Observable } from 'rxjs';
import { AddressGuard } from './address-guard.js';
import { type DeliveryView, toView } from './delivery-view.js';
import { QueueErrorFilter } from './queue-error.filter.js';
import { delivery, QUEUE, type Webhook, webhook } from './webhook.js';

@Controller('webhooks')
@UsePipes(StandardSchemaValidationPipe)
@UseFilters(QueueErrorFilter)
export class WebhooksController {
  constructor(
    private readonly producer: QueueProducer,
    private readonly events: QueueEvents,
    private readonly addresses: AddressGuard,
    @InjectQueue(QUEUE) private readonly queue: Queue,
  ) {}

  /** After this response the webhook will be delivered or become dead; with Redis even if this process crashes. */
  @Post()
  @HttpCode(202)
  async send(
    @Body({ schema: webhook }) wanted: Webhook,
    @Res({ passthrough: true }) response: ServerResponse,
  ): Promise<{ id: string }> {
    this.addresses.checkUrl(new URL(wanted.url));
    const { id } = await this.producer.add(delivery, wanted);
    response.setHeader('Location', `/webhooks/${id}`);
    return { id };
  }

  /** Number of deliveries in each state. */
  @Get()
  counts() {
    return this.queue.counts();
  }

  /** All events of all deliveries. A browser that lost the connection reconnects with the id of the last event it received. */
  @Sse('live')
  live(@Headers('last-event-id') last?: string, @Query('since') first?: string): Observable<MessageEvent> {
    const since = last || first;
    return this.events
      .of(QUEUE, since ? { since } : {})
      .pipe(map((event) => ({ id: event.eventId, data: event })));
  }

  @Get(':id')
  async show(@Param('id') id: string): Promise<DeliveryView> {
    const job = await this.queue.get(id);
    if (!job) throw new JobNotFoundError(QUEUE, id);
    return toView(job);
  }

  /** Gives a dead delivery five more attempts. */
  @Post(':id/retry')
  @HttpCode(202)
  async retry(@Param('id') id: string): Promise<{ id: string }> {
    await this.queue.dead.retry(id);
    return { id };
  }
}
