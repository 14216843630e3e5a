import { expect, it } from 'vitest';
import { sentinelFailover, type Blow } from './sentinel-failover.js';

it.each<[Blow, string]>([
  ['planned', 'a planned failover'],
  ['killed', 'the death of the primary'],
  ['stopped', 'a primary that stands still and comes back'],
])(
  'goes on after %s (%s), loses nothing that replicas have confirmed, and keeps no group and no key',
  async (blow) => {
    const { resumedMs, local, replicated, tenants, mostOfGroup, finish } = await sentinelFailover(blow);
    // The promise is a second; a busy machine takes longer.
    expect(resumedMs).toBeLessThan(10_000);
    expect(finish).toMatchObject({ isDrained: true, unhandled: [], violations: [] });
    expect(finish).toMatchObject({ stuckKeys: 0, stuckGroups: [] });
    for (const account of [replicated, tenants])
      expect(account).toMatchObject({ lost: [], phantom: [], undecided: 0 });
    expect(tenants.acknowledged).toBeGreaterThan(500);
    expect(mostOfGroup).toBe(1);
    expect(local).toMatchObject({ phantom: [], undecided: 0 });
    expect(finish.counts.map(({ dead }) => dead)).toEqual([0, 0, 0]);
  },
  120_000,
);
