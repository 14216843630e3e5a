import { Injectable } from '@nestjs/common';
import { OnEvent } from '@nestjs/event-emitter';
import { type EventOf, OnQueueEvent } from 'godwit';
import { Journal } from '../journal.js';
import { ORDERS } from './orders.js';

/** Listens to the same events with the emitter and without it. */
@Injectable()
export class Watchers {
  constructor(private readonly journal: Journal) {}

  @OnEvent('queue.*.completed')
  completed({ jobId, queue, durationUs }: EventOf<'completed'>): void {
    const ms = Math.round(durationUs / 1000);
    this.journal.write("@OnEvent('queue.*.completed')", `${jobId} of ${queue} took ${ms} ms`);
  }

  @OnQueueEvent('active', { queue: ORDERS })
  active({ jobId, attempt }: EventOf<'active'>): void {
    this.journal.write("@OnQueueEvent('active')", `${jobId}, attempt ${attempt}`);
  }
}
