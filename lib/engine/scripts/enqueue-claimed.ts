import { defineScript } from '../script.js';

/** The store's clock, or null where nothing was done: then `enqueue-plain` adds the job, and `exchange` claims for the worker. */
export const enqueueClaimed = defineScript({
  name: 'enqueue-claimed',
  memory: 'refuse',
  keys: [
    'meta',
    'wait',
    'suspects',
    'prioritized',
    'workers',
    'events',
    'worker',
    'active',
    'lane',
    'bodies',
  ],
  args: {
    seq: 'digits',
    rememberMs: 'digits',
    id: 'text',
    body: 'text',
    name: 'text',
    worker: 'text',
    claimSeq: 'digits',
    leaseMs: 'digits',
    maxEvents: 'int',
  },
  listArgs: (a, out) =>
    out.push(a.seq, a.rememberMs, a.id, a.body, a.name, a.worker, a.claimSeq, a.leaseMs, a.maxEvents),
  reply: (raw: number): number | null => raw || null,
});
