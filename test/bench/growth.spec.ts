import { describe, expect, it } from 'vitest';
import { roundOf, scenarioAt, sizesThatFit, type Growth } from '../../bench/src/growth/growth.js';
import { curvesOf } from '../../bench/src/growth/result.js';
import type { Contender } from '../../bench/src/contender.js';
import { curvePanels } from '../../bench/src/plots/curves.js';
import { newest } from '../../bench/src/plots/inputs.js';
import type { Result } from '../../bench/src/report/result.js';

const growth: Growth = {
  name: 'waiting',
  title: 'Jobs that wait',
  axis: { title: 'jobs waiting', base: 10 },
  sizes: [1_000, 10_000, 100_000],
  peersUpTo: 10_000,
  figures: [
    { key: 'speed', title: 'consume', unit: 'jobs/s', better: 'more' },
    { key: 'cost', title: 'cost', unit: 'µs', better: 'less' },
  ],
  promise: { figures: ['speed'], upTo: 10_000, worse: 0.1 },
  notes: [],
  memory: (size) => size * 1_000,
  at: () => ({ measure: () => Promise.resolve({}) }),
};
const contender = (name: string): Contender => ({
  name,
  packages: [],
  terms: [],
  offers: [],
  open: () => Promise.reject(new Error('is not opened here')),
});
const godwit = contender('godwit');
const peer = contender('peer');
const sample = (size: number, speed: number, one = godwit) => ({
  scenario: scenarioAt(growth, size).name,
  contender: one.name,
  round: 1,
  figures: { speed, cost: 4 },
});

describe('a growth', () => {
  it('is measured from the smallest size to the largest, peers up to theirs', () => {
    const turns = roundOf(growth, growth.sizes, [godwit, peer], 2);
    expect(turns.map((t) => `${t.scenario.name} ${t.contender} ${t.round}`)).toEqual([
      'waiting@1000 godwit 2',
      'waiting@1000 peer 2',
      'waiting@10000 godwit 2',
      'waiting@10000 peer 2',
      'waiting@100000 godwit 2',
    ]);
  });

  it('leaves out sizes for which half of the free memory is not enough', () => {
    expect(sizesThatFit(growth, 20_000_000)).toEqual([1_000, 10_000]);
    expect(sizesThatFit({ ...growth, memory: undefined }, 0)).toEqual(growth.sizes);
  });

  it('has a curve per figure and system, with slope and change, without the sizes that failed', () => {
    const failed = { scenario: 'waiting@10000', contender: 'peer', round: 1, error: 'it broke' };
    const samples = [
      sample(1_000, 100),
      sample(10_000, 10),
      sample(100_000, 1),
      sample(1_000, 7, peer),
      failed,
    ];
    const curves = curvesOf(growth, growth.sizes, [godwit, peer], samples);
    expect(curves.map(({ figure, contender }) => `${figure.key} ${contender}`)).toEqual([
      'speed godwit',
      'speed peer',
      'cost godwit',
      'cost peer',
    ]);
    expect(curves[0]!.fit!.exponent).toBeCloseTo(-1, 10);
    expect(curves[0]!.change).toBeCloseTo(-0.99, 10);
    expect(curves[1]).toMatchObject({ points: [{ size: 1_000 }] });
    expect(curves[1]!.fit).toBeUndefined();
    expect(curves[2]!.change).toBeCloseTo(0, 10);
  });

  it.each([
    [100, 92, true],
    [100, 88, false],
    [100, 200, true],
  ])('from %d to %d jobs/s keeps the promise of a tenth: %s', (from, to, kept) => {
    // Sizes beyond the promised one do not count.
    const samples = [sample(1_000, from), sample(10_000, to), sample(100_000, 1)];
    const { promise } = curvesOf(growth, growth.sizes, [godwit], samples)[0]!;
    expect(promise).toMatchObject({ upTo: 10_000, kept });
    expect(promise!.change).toBeCloseTo(to / from - 1, 10);
  });

  it('is drawn as a panel per figure, each curve with its slope at the end of the fitted line', () => {
    const samples = [sample(1_000, 100), sample(10_000, 10), sample(1_000, 7, peer)];
    const panels = curvePanels(
      { growth, curves: curvesOf(growth, growth.sizes, [godwit, peer], samples) },
      'godwit',
    );
    expect(panels.map(({ title, subtitle }) => `${title}: ${subtitle}`)).toEqual([
      'Consume: jobs per second, more is better',
      'Cost: µs, less is better',
    ]);
    expect(panels[0]!.curves.map(({ label, own }) => [label, own])).toEqual([
      ['godwit, slope −1.00', true],
      ['peer', false],
    ]);
    expect(panels[0]!.curves[0]!.fitted![1].y).toBeCloseTo(10, 8);
  });
});

describe('what is drawn', () => {
  const result = (startedAt: string, more: object) =>
    ({ startedAt, terms: { godwit: [] }, rows: [], ...more }) as unknown as Result;

  it('is the newest run that compares, and the newest of each growth', () => {
    const compares = { terms: { godwit: [], peer: [] } };
    const { comparison, growths } = newest([
      result('2026-01-01', compares),
      result('2026-01-03', compares),
      result('2026-01-09', {}),
      result('2026-01-05', { growth: { name: 'queues' } }),
      result('2026-01-04', { growth: { name: 'queues' }, ...compares }),
      result('2026-01-02', { growth: { name: 'payload' } }),
    ]);
    expect(comparison!.startedAt).toBe('2026-01-03');
    expect(growths.map((one) => `${one.growth.name} ${one.startedAt}`)).toEqual([
      'payload 2026-01-02',
      'queues 2026-01-05',
    ]);
  });

  it('passes over a run of what the table does not show', () => {
    const run = (startedAt: string, scenario: string) =>
      result(startedAt, { terms: { godwit: [], peer: [] }, rows: [{ scenario, key: 'perSecond' }] });
    const { comparison } = newest([
      run('2026-01-01', 'consume'),
      run('2026-01-02', 'consume'),
      run('2026-01-03', 'failing'),
    ]);
    expect(comparison!.startedAt).toBe('2026-01-02');
  });

  it('has limits and groups from the newest run that shows most of them', () => {
    const run = (startedAt: string, ...scenarios: string[]) =>
      result(startedAt, {
        terms: { godwit: [], peer: [] },
        rows: scenarios.map((scenario) => ({ scenario, key: scenario === 'fair' ? 'widest' : 'perSecond' })),
      });
    const runs = [
      run('2026-01-01', 'groups', 'fair'),
      run('2026-01-02', 'groups', 'fair'),
      run('2026-01-03', 'groups', 'consume'),
      run('2026-01-04', 'consume'),
    ];
    expect(newest(runs).limits!.startedAt).toBe('2026-01-02');
    expect(newest(runs).comparison!.startedAt).toBe('2026-01-04');
    expect(newest(runs.slice(3)).limits).toBeUndefined();
  });

  it('has every scenario beside every peer, each from the newest run that has it', () => {
    const run = (startedAt: string, ...scenarios: string[]) =>
      result(startedAt, {
        terms: { godwit: [], peer: [] },
        rows: scenarios.flatMap((scenario) => ['a', 'b'].map((key) => ({ scenario, key, of: startedAt }))),
      });
    const { everyRow } = newest([
      run('2026-01-02', 'adding', 'working', 'waiting'),
      run('2026-01-03', 'working'),
      run('2026-01-01', 'working', 'other'),
      result('2026-01-04', { rows: [{ scenario: 'alone' }] }),
    ]);
    expect(everyRow.map((row) => Object.values(row).join(' '))).toEqual([
      'adding a 2026-01-02',
      'adding b 2026-01-02',
      'working a 2026-01-03',
      'working b 2026-01-03',
      'waiting a 2026-01-02',
      'waiting b 2026-01-02',
      'other a 2026-01-01',
      'other b 2026-01-01',
    ]);
  });

  it('is empty if nothing was measured', () => {
    expect(newest([])).toEqual({ everyRow: [], growths: [] });
  });
});
