import { Redis } from 'ioredis';
import type { Contender, OpenOptions, Payload, Work } from '../contender.js';

const CLAIM = 1_000;

/** The least that moving JSON through a Redis list can cost. No queue can be faster; how near one comes is the point. */
export const floor: Contender = {
  name: 'floor',
  packages: ['ioredis'],
  terms: [
    `raw RPUSH and LPOP ${CLAIM} with JSON.parse, BLPOP when empty: no acknowledgement (a crash loses jobs), no retries, no ids, no events`,
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

function consume(commands: Redis, blocking: Redis, queues: readonly string[], work: Work) {
  const stop = new AbortController();

  const drain = async (queue: string): Promise<void> => {
    for (;;) {
      const bodies = await commands.lpop(queue, CLAIM);
      if (bodies === null) return;
      for (const body of bodies) work.handle(JSON.parse(body) as Payload);
    }
  };

  const run = async (): Promise<void> => {
    await Promise.all(queues.map(drain));
    while (!stop.signal.aborted) {
      const popped = await blocking.blpop([...queues], 0);
      if (popped === null) continue;
      work.handle(JSON.parse(popped[1]) as Payload);
      await drain(popped[0]);
    }
  };

  const ended = run().catch((error: unknown) => {
    // The block ends with an error when stop() closes its socket; any other end is a fault of the measurement.
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
