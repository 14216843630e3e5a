import { OnQueueEvent } from '#lib/decorators/on-queue-event.decorator.js';
import type { CompletedEvent, DeadEvent, EventOf, QueueEvent } from '#lib/events/queue-event.js';

export class Accepted {
  @OnQueueEvent('completed', { queue: 'email' })
  exact(event: EventOf<'completed'>): number {
    return event.durationUs;
  }
  @OnQueueEvent(['completed', 'dead'])
  either(event: EventOf<'completed' | 'dead'>): string {
    return event.type === 'dead' ? event.reason : event.jobId;
  }
  @OnQueueEvent('dead')
  wider(event: QueueEvent): string {
    return event.type;
  }
  @OnQueueEvent('dead', { queue: ['email', 'sms'], concurrency: 4 })
  async part({ jobId }: { jobId: string }): Promise<string> {
    return jobId;
  }
  @OnQueueEvent('paused')
  nothing(): void {}
  @OnQueueEvent()
  all(event: QueueEvent): string {
    return event.queue;
  }
  @OnQueueEvent({ queue: 'email' })
  ofOne(event: QueueEvent, more?: string): string {
    return more ?? event.queue;
  }
}

export class Refused {
  // @ts-expect-error another event
  @OnQueueEvent('dead')
  other(event: CompletedEvent): number {
    return event.durationUs;
  }
  // @ts-expect-error it hears completed too
  @OnQueueEvent(['completed', 'dead'])
  less(event: DeadEvent): string {
    return event.reason;
  }
  // @ts-expect-error it hears all of them
  @OnQueueEvent({ queue: 'email' })
  one(event: EventOf<'dead'>): string {
    return event.reason;
  }
  // @ts-expect-error nobody gives it a second argument
  @OnQueueEvent('dead')
  more(event: DeadEvent, job: string): string {
    return event.reason + job;
  }
  // @ts-expect-error no such event
  @OnQueueEvent('finished')
  unknown(): void {}
  // @ts-expect-error no such option
  @OnQueueEvent('dead', { queues: ['email'] })
  options(): void {}
  // @ts-expect-error not a method
  @OnQueueEvent('dead')
  field = 1;
  // @ts-expect-error not a method
  @OnQueueEvent('dead')
  get getter(): number {
    return 1;
  }
}
