import { describe, expect, it } from 'vitest';
import type { Contender } from '../../bench/src/contender.js';
import { godwit } from '../../bench/src/contenders/godwit.js';
import { turnsOf } from '../../bench/src/measure/turns.js';
import { windowsOf } from '../../bench/src/measure/windows.js';
import type { Scenario } from '../../bench/src/scenario.js';
import { fair } from '../../bench/src/scenarios/fair.js';
import { groups } from '../../bench/src/scenarios/groups.js';
import { expectAllHeard, rateOfOne } from '../../bench/src/scenarios/rates.js';
import { useCompanions, useLab } from './companions.js';
import { MemoryContender } from './memory-contender.js';

const labOf = useLab();
useCompanions();

async function take(scenario: Scenario, jobs: number, contender: Contender = godwit) {
  const lab = labOf(contender, jobs);
  await scenario.prepare?.(lab);
  const figures = await scenario.measure(lab);
  expect(Object.keys(figures).toSorted()).toEqual(scenario.figures.map(({ key }) => key).toSorted());
  return figures;
}

describe('starts in windows', () => {
  it('counts those of every window, also of one that begins between two starts', () => {
    // The second window of 10 ms has three starts, the one that begins at 4 has five.
    const starts = [0, 5, 8, 9, 12, 13, 19];
    expect(windowsOf(starts, 10)).toEqual({ largest: 5, smallest: 3 });
  });

  it('does not count the start at the end of a window', () => {
    expect(windowsOf([0, 10, 20], 10).largest).toBe(1);
    expect(windowsOf([0, 9, 20], 10).largest).toBe(2);
  });

  it('leaves out what is before and after the period', () => {
    expect(windowsOf([0, 1, 2, 30, 50, 51, 52, 53], 10, 20, 40)).toEqual({ largest: 1, smallest: 0 });
  });
});

describe('turns of groups', () => {
  it('are even if each group is served once per round', () => {
    expect(turnsOf([0, 1, 2, 0, 1, 2, 0, 0], [4, 2, 2])).toEqual({ untilAll: 3, inFirstRound: 3, widest: 1 });
  });

  it('differ by what one group got while another one waited', () => {
    expect(turnsOf([0, 0, 0, 1, 0], [4, 1])).toEqual({ untilAll: 4, inFirstRound: 1, widest: 3 });
  });

  it('do not differ from those of a group that has no more jobs', () => {
    expect(turnsOf([1, 0, 0, 0, 0], [4, 1]).widest).toBe(1);
  });
});

describe('a measurement of flow control', { timeout: 60_000 }, () => {
  it('works off groups', async () => {
    const { perSecond } = await take(groups, 500);
    expect(perSecond).toBeGreaterThan(0);
  });

  it('finds groups that take turns even', async () => {
    expect(await take(fair, 300)).toMatchObject({ widest: 1, inFirstRound: 1_000, untilAll: 1_000 });
  });

  it('finds the line of a queue without groups uneven', async () => {
    expect(await take(fair, 300, new MemoryContender())).toMatchObject({
      widest: 300,
      inFirstRound: 701,
      untilAll: 1_299,
    });
  });

  it('counts starts under a rate by the clock of Redis', async () => {
    const { used, largest } = await take(rateOfOne, 1_000);
    expect(used).toBeGreaterThan(5);
    expect(largest).toBeLessThanOrEqual(1_000);
  });

  it('fails when the event of a start is missing', async () => {
    await expect(expectAllHeard([1, 2], 3, 10)).rejects.toThrow('2 starts were heard of where 3 jobs ran');
  });
});
