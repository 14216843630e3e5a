import { Redis } from 'ioredis';
import type { Contender, OpenOptions, Payload, Work } from '../contender.js';

const CLAIM = 1_000;

/** The lowest cost of moving JSON through a Redis list. No queue can be faster. */
export const floor: Contender = {
  name: 'floor',
  packages: ['ioredis'],
  terms: [
    `raw RPUSH and LPOP ${CLAIM} with JSON.parse, the next LPOP once all of those have ended, BLPOP when empty: no acknowledgement (a crash loses jobs), no retries, no ids, no events`,
  ],
  offers: [],
  async open({ url, queues, work }: OpenOptions) {
    const commands = new Redis(url);
    const loop = work && consume(commands, new Redis(url), queues, work);
    return {
      add: (queue, data) => commands.rpush(queue, JSON.stringify(data)),
      addBulk: (queue, data) => commands.rpush(queue, ...data.map((d) => JSON.stringify(d))),
      outstanding: (queue) => commands.llen(queue),
      async close() {
        await loop?.stop();
        commands.disconnect();
      },
    };
  },
};

/** Runs this many jobs at once; a handler that returns no promise is not awaited. */
async function handleAll(bodies: readonly string[], { concurrency, handle }: Work): Promise<void> {
  let next = 0;
  const lane = async (): Promise<void> => {
    while (next < bodies.length) {
      const ended = handle(JSON.parse(bodies[next++]!) as Payload);
      if (ended instanceof Promise) await ended;
    }
  };
  await Promise.all(Array.from({ length: Math.min(concurrency, bodies.length) }, lane));
}

function consume(commands: Redis, blocking: Redis, queues: readonly string[], work: Work) {
  const stop = new AbortController();

  const drain = async (queue: string): Promise<void> => {
    for (;;) {
      const bodies = await commands.lpop(queue, CLAIM);
      if (bodies === null) return;
      await handleAll(bodies, work);
    }
  };

  const run = async (): Promise<void> => {
    await Promise.all(queues.map(drain));
    while (!stop.signal.aborted) {
      const popped = await blocking.blpop([...queues], 0);
      if (popped === null) continue;
      await handleAll([popped[1]], work);
      await drain(popped[0]);
    }
  };

  const ended = run().catch((error: unknown) => {
    // stop() closes the socket, which ends the blocking call with an error. Any other end is a fault of the
    // measurement.
    if (!stop.signal.aborted) throw error;
  });
  return {
    stop(): Promise<void> {
      stop.abort();
      blocking.disconnect();
      return ended;
    },
  };
}
