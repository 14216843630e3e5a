import { expect, it } from 'vitest';
import { sentinelFailover, type Blow } from './sentinel-failover.js';

it.each<[Blow, string]>([
  ['planned', 'a planned failover'],
  ['killed', 'the death of the primary'],
  ['stopped', 'a primary that stands still and comes back'],
])(
  'goes on after %s (%s), and loses nothing that replicas have confirmed',
  async (blow) => {
    const { resumedMs, local, replicated, finish } = await sentinelFailover(blow);
    // The promise is a second; a busy machine takes longer.
    expect(resumedMs).toBeLessThan(10_000);
    expect(finish).toMatchObject({ isDrained: true, unhandled: [], violations: [] });
    expect(replicated).toMatchObject({ lost: [], phantom: [], undecided: 0 });
    expect(local).toMatchObject({ phantom: [], undecided: 0 });
    expect(finish.counts.map(({ dead }) => dead)).toEqual([0, 0]);
  },
  120_000,
);
