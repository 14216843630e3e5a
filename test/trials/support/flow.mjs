// Extras of child.mjs for many jobs: they carry a number in their data, and are counted by it where they run.
import { QueueEvents, QueueProducer, getQueueToken } from '#lib/index.js';

const CHUNK = 1_000;
/** Jobs in the line at which filling waits, so that producer and worker go side by side. */
const LINE_FULL = 20_000;
const GAP_MS = 400;

const runs = { total: 0, counts: new Uint8Array(1 << 20), last: 0, latencies: [] };
let tell = () => {};

const now = () => performance.timeOrigin + performance.now();

function count(n) {
  if (n >= runs.counts.length) {
    const wider = new Uint8Array(2 ** Math.ceil(Math.log2(n + 1)));
    wider.set(runs.counts);
    runs.counts = wider;
  }
  if (runs.counts[n] < 255) runs.counts[n] += 1;
  runs.total += 1;
}

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

export const deeds = {
  /** Counts itself; after a time without runs it says so, since that is how long work stood still. */
  count: ({ data }) => {
    count(data.n);
    const at = performance.now();
    if (runs.last > 0 && at - runs.last > GAP_MS) tell({ kind: 'gap', ms: at - runs.last });
    runs.last = at;
  },
  /** Notes how long it waited for its start, and works for some ms. */
  clock: ({ data }) => {
    runs.latencies.push([data.n, now() - data.at]);
    count(data.n);
    return pause(data.work);
  },
  /** Notes how late it is, by the wall clock, which is also that of a Redis on the same machine. */
  late: ({ data }) => {
    runs.latencies.push([data.n, Date.now() - data.at]);
    count(data.n);
  },
};

/** Adds one job after another at a given rate, and keeps what became of each. */
class Flood {
  made = 0;
  stored = 0;
  refused = [];
  unknown = [];
  others = [];
  longestMs = 0;
  open = new Set();

  constructor(queue, { perSecond, name, ...data }) {
    const since = performance.now();
    this.timer = setInterval(() => {
      const due = ((performance.now() - since) / 1000) * perSecond;
      while (this.made < due) this.add(queue, name, { ...data, n: this.made++ });
    }, 5);
  }

  add(queue, name, data) {
    const since = performance.now();
    const added = queue
      .add(name, { ...data, at: now() })
      .then(
        () => (this.stored += 1),
        (error) => {
          if (error.applied === 'no') this.refused.push(data.n);
          else if (error.applied === 'unknown') this.unknown.push(data.n);
          else this.others.push(String(error));
        },
      )
      .then(() => {
        this.longestMs = Math.max(this.longestMs, performance.now() - since);
        this.open.delete(added);
      });
    this.open.add(added);
  }

  async stop() {
    clearInterval(this.timer);
    await Promise.all(this.open);
    const { made, stored, refused, unknown, others, longestMs } = this;
    return { made, stored, refused, unknown, others, longestMs };
  }
}

async function fill(queue, { from, count: jobs, name }) {
  for (let first = from; first < from + jobs; first += 2 * CHUNK) {
    const chunk = (start) =>
      queue.addBulk(
        Array.from({ length: Math.min(CHUNK, from + jobs - start) }, (_, i) => ({
          name,
          data: { n: start + i },
        })),
      );
    await Promise.all([chunk(first), ...(first + CHUNK < from + jobs ? [chunk(first + CHUNK)] : [])]);
    if (first % (10 * CHUNK) === 0) while ((await queue.counts()).waiting > LINE_FULL) await pause(5);
  }
}

/** The memory of this process, with as little garbage as possible. */
function memory({ collect } = {}) {
  if (collect) globalThis.gc?.();
  const { rss, heapUsed, external } = process.memoryUsage();
  return { rss, heapUsed, external, runs: runs.total };
}

export function verbs({ app, queue: name, tell: say }) {
  tell = say;
  const queue = app.get(getQueueToken(name), { strict: false });
  let flood;
  return {
    fill: ([plan]) => fill(queue, plan),
    flood: ([plan]) => void (flood = new Flood(queue, plan)),
    ebb: () => flood.stop(),
    many: ([jobs]) => app.get(QueueProducer).addBulk(name, jobs),
    memory: ([how]) => memory(how),
    /** How many of the numbers below `below` have run never, and more than once; and which of `these` have run. */
    tally: ([below, these = []]) => {
      const counts = runs.counts.subarray(0, below);
      return {
        runs: runs.total,
        never: counts.reduce((sum, times) => sum + (times === 0), 0),
        twice: counts.reduce((sum, times) => sum + (times > 1), 0),
        ran: these.filter((n) => runs.counts[n] > 0),
      };
    },
    latencies: () => runs.latencies,
    forget: () => void (runs.latencies = []),
    listen: () => {
      const events = app.get(QueueEvents);
      events.of(name).subscribe(({ type, jobId }) => say({ kind: 'event', type, id: jobId }));
      return events.ready(name);
    },
  };
}
