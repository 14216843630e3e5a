import { describe, expect, it } from 'vitest';
import { comparisonPanels, ratioPanel } from '../../bench/src/plots/comparison.js';
import { behindTable, fillMarked, figuresTable, LIMIT_LINES, summary } from '../../bench/src/plots/table.js';
import type { Result, Row } from '../../bench/src/report/result.js';

const less = { unit: 'µs', better: 'less' } as const;
const rows = [
  row('consume', 'perSecond', { godwit: 190_123, other: 19_012.3, floor: 950_000 }),
  row('consume', 'redisCpu', { godwit: 2.04, other: 51, floor: 0.4 }, less),
  row('pick-up', 'p50', { godwit: 0.16, other: 0.12 }, { unit: 'ms', better: 'less' }),
  row('pick-up', 'p99', { godwit: 0.35, other: 0.29 }, { unit: 'ms', better: 'less' }),
];

describe('the plot of the comparison', () => {
  it('has a panel for each figure that was measured, and a bar for each system but the floor', () => {
    const panels = comparisonPanels(rows, 'godwit');
    expect(panels.map(({ subtitle }) => subtitle)).toEqual([
      'jobs per second, more is better',
      'µs, less is better',
      'median / p99 in ms, less is better',
    ]);
    expect(panels[0]!.bars).toEqual([
      { name: 'godwit', value: 190_123, label: '190,123', own: true },
      { name: 'other', value: 19_012.3, label: '19,012', own: false },
    ]);
    expect(panels[2]!.bars[1]).toEqual({
      name: 'other',
      value: 0.12,
      tail: 0.29,
      label: '0.12 / 0.29',
      own: false,
    });
  });

  it('leaves out systems without a figure, and panels without any', () => {
    const panels = comparisonPanels(
      [row('add-bulk', 'perSecond', { godwit: 5 }), row('consume', 'redisCpu', {})],
      'godwit',
    );
    expect(panels.map(({ bars }) => bars.map(({ name }) => name))).toEqual([['godwit']]);
  });

  it('shows how many times better it is, for figures where more is better and where less is, once per scenario', () => {
    const connections = [
      row('connections', 'one', { godwit: 3, other: 3 }, { unit: '', better: 'less' }),
      row('connections', 'many', { godwit: 3, other: 300 }, { unit: '', better: 'less' }),
    ];
    const { peers, lines } = ratioPanel([...rows, ...connections], 'godwit');
    expect(peers).toEqual(['other']);
    expect(lines).toEqual([
      { name: 'all of consume', ratios: { other: 10 } },
      { name: 'all of pick-up', ratios: { other: 0.12 / 0.16 } },
      { name: 'all of connections', ratios: { other: 100 } },
    ]);
    expect(ratioPanel([row('consume', 'perSecond', { other: 5 })], 'godwit').lines).toEqual([]);
  });
});

describe('the figures of the documentation', () => {
  const terms = { godwit: [], other: [], floor: [] };

  it('are a row per measured figure, with a dash for systems that have none', () => {
    expect(figuresTable({ rows, terms }, 'godwit').split('\n')).toEqual([
      '| | godwit | other | floor |',
      '|---|---|---|---|',
      '| consume no-op jobs, concurrency 100, jobs/s | 190,123 | 19,012 (10 ×) | 950,000 |',
      '| CPU of Redis per consumed job | 2.0 µs | 51 µs (25 ×) | 0.40 µs |',
      '| idle worker, from `add` to the handler, p50 / p99 | 0.16 / 0.35 ms | 0.12 / 0.29 ms (0.8 ×) | – |',
    ]);
  });

  it('have a table of their own for limits and groups', () => {
    const limited = [
      row('fair', 'widest', { godwit: 1, other: 110 }, { unit: '', better: 'less' }),
      row('rate-8', 'smallest', { godwit: 990, floor: 500 }, { unit: '' }),
      row('rate-8', 'largest', { godwit: 1_000, floor: 1_500 }, { unit: '', better: 'less' }),
      row('rate-8', 'used', { godwit: 99.5, floor: 90 }, { unit: '%' }),
    ];
    expect(
      figuresTable({ rows: [...rows, ...limited], terms }, 'godwit', LIMIT_LINES)
        .split('\n')
        .slice(2),
    ).toEqual([
      '| one large and 999 small groups: largest difference of turns | 1 | 110 (110 ×) | – |',
      '| rate of 1,000/s, 8 processes: fewest / most starts in any second | 990 / 1,000 | – | 500 / 1,500 |',
      '| share of this rate that is used, 8 processes | 99.5 % | – | 90 % |',
    ]);
  });

  it('show a small ratio as it is, not as 0', () => {
    const calls = [row('consume', 'commands', { godwit: 23, other: 0.33 }, { unit: '', better: 'less' })];
    expect(figuresTable({ rows: calls, terms: { godwit: [], other: [] } }, 'godwit')).toContain(
      '| 23 | 0.33 (0.01 ×) |',
    );
  });

  it('name every figure in which a peer is ahead, but for conditions and noise', () => {
    const calls = row('consume', 'scriptCalls', { godwit: 2, other: 0.1 }, { unit: '', better: 'less' });
    const noise = row('add-one', 'perSecond', { godwit: 97, other: 100 });
    expect(
      behindTable([...rows, calls, noise], 'godwit')
        .split('\n')
        .slice(2),
    ).toEqual([
      '| all of pick-up | p50 | 0.16 ms | other 0.12 ms (0.8 ×) |',
      '| all of pick-up | p99 | 0.35 ms | other 0.29 ms (0.8 ×) |',
    ]);
  });

  it('are one sentence in the README that compares with one peer', () => {
    const surroundings = { packages: { other: '1.2.3' } } as unknown as Result['surroundings'];
    expect(summary({ rows, surroundings }, 'godwit', 'other')).toBe(
      'Compared with `other` 1.2.3, Godwit consumes 10 × as many jobs per second and needs 1/25 of the Redis CPU per job.',
    );
    expect(summary({ rows, surroundings }, 'godwit', 'absent')).toBe('');
  });

  it('are written between their markers, and nothing else on the page changes', () => {
    const page = 'before\n<!-- figures: begin -->\nold\n<!-- figures: end -->\nafter';
    const filled = fillMarked(page, 'figures', 'new');
    expect(filled).toBe('before\n<!-- figures: begin -->\n\nnew\n\n<!-- figures: end -->\nafter');
    expect(fillMarked(filled, 'figures', 'new')).toBe(filled);
  });

  it('are not written to a page without markers', () => {
    expect(() => fillMarked('nothing', 'figures', 'new')).toThrow('the page has no lines');
  });
});

/** A row of a result with these medians. */
function row(
  scenario: string,
  key: string,
  medians: Record<string, number>,
  more: Partial<Pick<Row, 'unit' | 'better'>> = {},
): Row {
  return {
    scenario,
    scenarioTitle: `all of ${scenario}`,
    jobs: 100,
    key,
    title: key,
    unit: 'jobs/s',
    better: 'more',
    ...more,
    contenders: Object.fromEntries(
      Object.entries(medians).map(([name, median]) => [
        name,
        { count: 1, median, min: median, max: median, spread: 0 },
      ]),
    ),
    ratios: {},
  };
}
