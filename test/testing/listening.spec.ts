import { Injectable } from '@nestjs/common';
import { describe, expect, it } from 'vitest';
import {
  InjectQueue,
  OnQueueEvent,
  Queue,
  type CompletedEvent,
  type Job,
  type QueueEvent,
  type WrapHook,
} from '#lib/index.js';
import { endOfTurn } from '../support/wait.js';
import { setBench } from './support.js';

const heard: string[] = [];

@Injectable()
class Ledger {
  constructor(@InjectQueue('work') private readonly work: Queue) {}

  @OnQueueEvent({ queue: 'work' })
  async any({ type }: QueueEvent) {
    await endOfTurn();
    heard.push(type);
  }

  @OnQueueEvent('completed', { queue: 'work' })
  async follow({ name }: CompletedEvent) {
    if (name === 'order') await this.work.add('invoice', {});
  }
}

describe('listeners and hooks', () => {
  it('are called before drain resolves, and jobs that they add run too', async () => {
    heard.length = 0;
    const handlers = { work: { order: () => 1, invoice: () => 2 } };
    const { work, queue, module } = await setBench({ handlers, providers: [Ledger] });
    await queue.add('order', {});
    expect((await work.drain()).map(({ name }) => name)).toEqual(['order', 'invoice']);
    expect(heard).toEqual(['added', 'active', 'completed', 'added', 'active', 'completed']);
    await module.close();
  });

  it('also wrap a run by hand', async () => {
    const seen: unknown[] = [];
    const wrap: WrapHook = async (job, next) => {
      seen.push(`before ${job.name}`);
      const result = await next();
      seen.push(`after ${job.name}`);
      return result;
    };
    const { testing, work, queue } = await setBench({
      root: { wrap },
      handlers: { work: { greet: (job: Job) => void seen.push(job.data) } },
    });
    await testing.run('work', 'greet', 1);
    await queue.add('greet', 2);
    await work.runNext();
    expect(seen).toEqual(['before greet', 1, 'after greet', 'before greet', 2, 'after greet']);
  });
});
