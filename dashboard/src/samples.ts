import { signal } from '@preact/signals';
import type { OverviewView } from '../../lib/subpaths/dashboard/views.js';

/** The counts of the overview since this page was opened, as rates per minute. */

interface Sample {
  readonly at: number;
  readonly processed: number;
  readonly failed: number;
  readonly waiting: Readonly<Record<string, number>>;
}

const MAX = 1_200;
/** Rates are averages over this many ms, so that a batch does not appear as a peak. */
const WINDOW_MS = 15_000;
const samples = signal<readonly Sample[]>([]);

export function sample({ now, queues }: OverviewView): void {
  if (samples.value.at(-1)?.at === now) return;
  const sum = (field: 'processed' | 'failed') => queues.reduce((all, queue) => all + queue.today[field], 0);
  const waiting = Object.fromEntries(queues.map((queue) => [queue.name, queue.counts.waiting]));
  samples.value = [
    ...samples.value.slice(1 - MAX),
    { at: now, processed: sum('processed'), failed: sum('failed'), waiting },
  ];
}

export function rates(): { times: number[]; processed: number[]; failed: number[] } {
  const all = samples.value;
  const times: number[] = [];
  const processed: number[] = [];
  const failed: number[] = [];
  let from = 0;
  for (const [at, one] of all.entries()) {
    while (one.at - all[from]!.at > WINDOW_MS && from < at - 1) from += 1;
    const first = all[from]!;
    const minutes = (one.at - first.at) / 60_000;
    if (minutes <= 0) continue;
    times.push(one.at);
    // At midnight the counters start again at 0.
    processed.push(Math.max(0, (one.processed - first.processed) / minutes));
    failed.push(Math.max(0, (one.failed - first.failed) / minutes));
  }
  return { times, processed, failed };
}

export function waitingOf(queue: string): number[] {
  return samples.value.slice(-60).map(({ waiting }) => waiting[queue] ?? 0);
}
