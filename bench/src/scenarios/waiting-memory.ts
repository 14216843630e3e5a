import { payload, payloadOf, type Payload, type Retry } from '../contender.js';
import { memoryAlone } from '../measure/memory.js';
import { fill } from '../measure/produce.js';
import type { Figure, Scenario } from '../scenario.js';

const WARM_UP = 1_000;
const SMALL = JSON.stringify(payload(99_999)).length;
const MEDIUM = 200;

interface Case {
  readonly figure: Figure;
  readonly make: (n: number) => Payload;
  readonly retry?: Retry;
}

/** Redis keeps a hash compact while no value in it is above 64 bytes, so there is a case on either side of that edge. */
const cases: readonly Case[] = [
  { figure: bytes('small', `payload of ${SMALL} bytes`), make: payload },
  {
    figure: bytes('retrying', `payload of ${SMALL} bytes, 3 attempts with exponential backoff`),
    make: payload,
    retry: { attempts: 3, backoff: 'exponential', delayMs: 1_000 },
  },
  { figure: bytes('medium', `payload of ${MEDIUM} bytes`), make: (n) => payloadOf(MEDIUM, n) },
];

/** Growth of memory by a full queue. */
export const waitingMemory: Scenario = {
  name: 'waiting-memory',
  title: 'Redis memory per waiting job, its payload included',
  figures: cases.map((c) => c.figure),
  async measure(lab) {
    const figures: Record<string, number> = {};
    for (const { figure, make, retry } of cases) {
      await lab.control.flushall('SYNC');
      // Loads the scripts and writes the fixed keys, which are not part of the cost of a job.
      await fill(lab, { count: WARM_UP, make, retry });
      const before = await memoryAlone(lab);
      await fill(lab, { from: WARM_UP, count: lab.jobs, make, retry });
      figures[figure.key] = ((await memoryAlone(lab)) - before) / lab.jobs;
    }
    return figures;
  },
};

function bytes(key: string, title: string): Figure {
  return { key, title, unit: 'bytes', better: 'less' };
}
