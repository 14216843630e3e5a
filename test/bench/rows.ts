import type { Row } from '../../bench/src/report/result.js';

/** A row of a result with these medians. */
export function row(
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
