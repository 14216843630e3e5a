import type { Sample } from './gauge.js';

const FIELDS = ['keys', 'redisBytes', 'workerRss'] as const;

/** Growth per minute, by least squares over the second half of the load. */
export type Slopes = Readonly<Record<(typeof FIELDS)[number], number>>;

/** Shows what grows without end. The first half is left out, because caches still fill up. */
export function slopesOf(samples: readonly Sample[]): Slopes {
  const half = samples.slice(Math.floor(samples.length / 2));
  return Object.fromEntries(FIELDS.map((field) => [field, Math.round(slope(half, field) * 60)])) as Record<
    (typeof FIELDS)[number],
    number
  >;
}

function slope(samples: readonly Sample[], field: (typeof FIELDS)[number]): number {
  // A moment without workers says nothing about their size.
  const points = samples.filter((sample) => sample[field] > 0);
  if (points.length < 2) return 0;
  const mean = (pick: (sample: Sample) => number) =>
    points.reduce((sum, sample) => sum + pick(sample), 0) / points.length;
  const [x, y] = [mean(({ at }) => at), mean((sample) => sample[field])];
  let up = 0;
  let along = 0;
  for (const sample of points) {
    up += (sample.at - x) * (sample[field] - y);
    along += (sample.at - x) ** 2;
  }
  return along === 0 ? 0 : up / along;
}
