import { clearTimeout, setTimeout } from 'node:timers';
import { QueueTestingError } from './errors.js';
import type { Hands } from './hands.js';
import type { TestBench } from './test-bench.js';

/** Waits until workers that run by themselves have nothing to do. */
export async function awaitIdle(bench: TestBench, hands: Hands, timeoutMs: number): Promise<void> {
  if (hands.isManual) {
    throw new QueueTestingError(
      'idle(): nothing runs by itself here; run what waits with drain(), or use QueueTestingModule.forRoot({ autoStart: true })',
    );
  }
  const until = performance.now() + timeoutMs;
  for (;;) {
    const next = nextStir(bench);
    // oxlint-disable-next-line no-await-in-loop -- asked again each time something has changed
    const busy = await whatIsLeft(bench, hands.queues);
    const leftMs = until - performance.now();
    if (busy === '' || leftMs <= 0) {
      next.cancel();
      if (busy === '') return;
      throw new QueueTestingError(`idle(): after ${timeoutMs} ms there is still work: ${busy}`);
    }
    // oxlint-disable-next-line no-await-in-loop -- see above
    await next.within(leftMs);
  }
}

/** `''` where there is nothing. */
async function whatIsLeft(bench: TestBench, queues: readonly string[]): Promise<string> {
  const counts = await Promise.all(
    queues.map(async (queue) => ({ queue, ...(await bench.engine.admin.counts(queue)) })),
  );
  return counts
    .map(({ queue, waiting, active, paused }) => ({ queue, active, waiting: paused ? 0 : waiting }))
    .filter(({ waiting, active }) => waiting + active > 0)
    .map(({ queue, waiting, active }) => `${active} running and ${waiting} waiting in queue '${queue}'`)
    .join(', ');
}

/** The next time that something may have changed, from now on. */
function nextStir(bench: TestBench) {
  let stop!: () => void;
  const stirred = new Promise<void>((resolve) => {
    stop = bench.onStir(resolve);
  });
  return {
    cancel: stop,
    async within(ms: number): Promise<void> {
      let timer: NodeJS.Timeout | undefined;
      const late = new Promise<void>((resolve) => (timer = setTimeout(resolve, ms)));
      await Promise.race([stirred, late]);
      clearTimeout(timer);
      stop();
    },
  };
}
