import assert from 'node:assert/strict';
import { afterEach, beforeEach, vi } from 'vitest';
import { StoreEventReader } from '#lib/events/event-reader.js';
import type { EventsStatus } from '#lib/events/event-status.js';
import { FakeEventEngine } from './fake-event-engine.js';

/** A reader on a fake engine and virtual time, made for each test. Closing it must leave nothing. */
class ReaderBench {
  engine!: FakeEventEngine;
  reader!: StoreEventReader;
  states!: string[];

  listen(queue: string, options: { since?: number; jobId?: string } = {}) {
    const seen: string[] = [];
    const leave = this.reader.listen(
      queue,
      options,
      (event) => void seen.push(`${event.type} ${event.eventId}`),
    );
    return { seen, leave };
  }
}

export function useReader(): ReaderBench {
  const bench = new ReaderBench();
  beforeEach(() => {
    vi.useFakeTimers();
    vi.spyOn(Math, 'random').mockReturnValue(0);
    bench.engine = new FakeEventEngine();
    bench.reader = new StoreEventReader(bench.engine);
    bench.states = [];
    bench.reader.status.status$.subscribe((status) => void bench.states.push(say(status)));
  });
  afterEach(async () => {
    await bench.reader.close();
    assert.equal(bench.engine.connections, 0);
    await vi.advanceTimersByTimeAsync(0);
    assert.equal(bench.engine.linkListeners, 0);
    vi.useRealTimers();
    vi.restoreAllMocks();
  });
  return bench;
}

/** All that can happen without time passing has happened. */
export const quiet = () => vi.advanceTimersByTimeAsync(0);
/** Short reads and backoffs have ended. A block has not. */
export const soon = () => vi.advanceTimersByTimeAsync(150);

function say(status: EventsStatus): string {
  if (status.state === 'gap') return `gap ${status.queue} ${status.missed}`;
  return status.state === 'lost' ? `lost ${status.error.message}` : status.state;
}
