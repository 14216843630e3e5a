import { Injectable } from '@nestjs/common';
import { EventEmitter2, EventEmitterReadinessWatcher } from '@nestjs/event-emitter';
import { OnQueueEvent, type QueueEvent } from 'godwit';

/** Emits every event as `queue.<queue>.<type>` for `@OnEvent` of `@nestjs/event-emitter`, as in `queue.*.dead`. */
@Injectable()
export class EventEmitterBridge {
  constructor(
    private readonly emitter: EventEmitter2,
    private readonly watcher: EventEmitterReadinessWatcher,
  ) {}

  @OnQueueEvent()
  async emit(event: QueueEvent): Promise<void> {
    await this.watcher.waitUntilReady();
    // A list, because a queue name with dots must stay one word.
    this.emitter.emit(['queue', event.queue, event.type], event);
  }
}
