import { Logger } from '@nestjs/common';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { QueueEngine, RecoverAnswer, RecoverCall } from '#lib/contract/engine.js';
import { Recoverer } from '#lib/worker/recoverer.js';
import { atEnd } from '../support/cleanup.js';

const LEASE_MS = 8_000;
const BEAT_MS = LEASE_MS / 4;

/** Leases by worker, and what is asked about them, by the test's clock. */
class Leases {
  readonly ends = new Map<string, number>();
  readonly looks: number[] = [];
  readonly recovered: [worker: string, at: number][] = [];
  private readonly doubts = new Map<string, number>();

  renew(worker: string): void {
    this.ends.set(worker, performance.now() + LEASE_MS);
  }

  async overdue(_: string, withinMs: number) {
    this.looks.push(performance.now());
    return [...this.ends]
      .map(([worker, end]) => ({ worker, endsInMs: end - performance.now() }))
      .filter(({ endsInMs }) => endsInMs <= withinMs);
  }

  async recover(_: string, { worker, beatMs }: RecoverCall): Promise<RecoverAnswer> {
    const now = performance.now();
    const end = this.ends.get(worker);
    if (end === undefined || end > now + beatMs) return { kind: 'alive' };
    const since = this.doubts.get(`${worker} ${end}`);
    if (since === undefined) this.doubts.set(`${worker} ${end}`, now);
    const againInMs = Math.max(end - now, (since ?? now) + beatMs - now);
    if (againInMs > 0) return { kind: 'doubted', againInMs };
    this.ends.delete(worker);
    this.recovered.push([worker, now]);
    return { kind: 'recovered', waiting: ['a'], suspects: [], dead: [], cancelled: [], more: false };
  }
}

let leases: Leases;
let recoverer: Recoverer;
const passes = (ms: number) => vi.advanceTimersByTimeAsync(ms);
const watch = () => recoverer.watch('work', 'ours', Math.min(...leases.ends.values()) - performance.now());

beforeEach(() => {
  vi.useFakeTimers();
  Logger.overrideLogger(false);
  leases = new Leases();
  recoverer = new Recoverer(leases as unknown as QueueEngine, { leaseMs: LEASE_MS, maxStalls: 5 });
  atEnd(() => recoverer.stop());
});
afterEach(() => {
  vi.useRealTimers();
});

describe('a worker that dies', () => {
  it('is recovered when its lease ends, though it was renewed since the last exchange heard of it', async () => {
    leases.renew('other');
    watch();
    for (let beats = 1; beats <= 5; beats++) {
      await passes(BEAT_MS);
      leases.renew('other');
    }
    const end = leases.ends.get('other')!;
    await passes(4 * LEASE_MS);
    expect(leases.recovered).toEqual([['other', end]]);
  });

  it('is recovered when its own lease ends, beside others that died a little earlier', async () => {
    leases.renew('first');
    watch();
    await passes(BEAT_MS / 2);
    leases.renew('second');
    const ends = [...leases.ends.values()];
    await passes(4 * LEASE_MS);
    expect(leases.recovered).toEqual([
      ['first', ends[0]],
      ['second', ends[1]],
    ]);
  });
});

it('does not look after the worker of its own process, nor where nothing is held', async () => {
  leases.renew('other');
  leases.renew('ours');
  watch();
  await passes(BEAT_MS);
  leases.renew('ours');
  leases.ends.delete('other');
  await passes(LEASE_MS);
  const looks = leases.looks.length;
  expect(looks).toBe(1);
  await passes(4 * LEASE_MS);
  expect(leases.looks).toHaveLength(looks);
  expect(leases.recovered).toEqual([]);
});
