import { Injectable, type OnApplicationBootstrap } from '@nestjs/common';
import { EventBus } from '@nestjs/cqrs';
import { type EventOf, OnQueueEvent } from 'godwit';
import { JobCompleted, JobDied } from './job-events.js';

/** Publishes what ends a job on the event bus of `@nestjs/cqrs`: for `@EventsHandler` and `@Saga`. */
@Injectable()
export class CqrsBridge implements OnApplicationBootstrap {
  private open!: () => void;
  private readonly opened = new Promise<void>((resolve) => (this.open = resolve));

  constructor(private readonly bus: EventBus) {}

  /** By now the bus knows its handlers; events that come earlier wait for that. */
  onApplicationBootstrap(): void {
    this.open();
  }

  @OnQueueEvent(['completed', 'dead'])
  async publish(event: EventOf<'completed' | 'dead'>): Promise<void> {
    await this.opened;
    this.bus.publish(event.type === 'dead' ? new JobDied(event) : new JobCompleted(event));
  }
}
