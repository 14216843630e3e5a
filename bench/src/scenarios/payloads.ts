import { payloadOf, type Payload } from '../contender.js';
import { consumedFigures, measureConsuming } from '../measure/consuming.js';
import { inBatchesOf, measureProducing } from '../measure/produce.js';
import type { Figure, Scenario } from '../scenario.js';

const KIB = 1_024;
const MIB = KIB * KIB;
/** No payload without its note is as long. */
const BARE = 200;

export const payload1k = carrying(1, 1_000, (asked) => Math.ceil(asked / 5));
/** A quarter of a GiB waits in Redis at the default size, and 5 MiB are in a call. */
export const payload100k = carrying(100, 50, (asked) => Math.ceil(asked / 50));

/** Adds jobs of one size in bulk and processes them, one after the other in one process. */
function carrying(kib: number, batch: number, jobs: Scenario['jobs']): Scenario {
  const bytes = kib * KIB;
  const make = (n: number): Payload => payloadOf(bytes, n);
  return {
    name: `payload-${kib}k`,
    title: `payload of ${kib} KiB: add in bulk, ${batch.toLocaleString('en')} jobs a call, then consume, no-op handler, concurrency 100`,
    jobs,
    figures: [...rates('add', 'add'), ...rates('consume', 'consume'), ...costs('consuming')],
    async measure(lab) {
      const added = await measureProducing(lab, lab.jobs, inBatchesOf(batch), { make });
      const { figures: consumed } = await measureConsuming(lab, {
        concurrency: 100,
        handler: (tally) => (job) => {
          if ((job.note?.length ?? 0) < bytes - BARE) tally.fail(`job ${job.n} has lost its payload`);
          tally.handle(job);
        },
      });
      const { perSecond, ...spent } = consumed;
      return {
        ...spent,
        addPerSecond: added.perSecond!,
        addMiBPerSecond: (added.perSecond! * bytes) / MIB,
        consumePerSecond: perSecond!,
        consumeMiBPerSecond: (perSecond! * bytes) / MIB,
      };
    },
  };
}

function rates(key: string, title: string): Figure[] {
  return [
    { key: `${key}PerSecond`, title, unit: 'jobs/s', better: 'more' },
    { key: `${key}MiBPerSecond`, title, unit: 'MiB/s', better: 'more' },
  ];
}

function costs(of: string): Figure[] {
  return consumedFigures
    .filter(({ key }) => key !== 'perSecond')
    .map((figure) => ({ ...figure, title: `${of}: ${figure.title}` }));
}
