import { expect, it } from 'vitest';
import { rowsOf } from '../../bench/src/report/result.js';
import { render } from '../../bench/src/report/text.js';
import { jobsOf } from '../../bench/src/scenario.js';
import { scenarios } from '../../bench/src/scenarios/index.js';
import { MemoryContender } from './memory-contender.js';

const ASKED = 100_000;
const surroundings = {
  machine: { cpu: 'a CPU', cores: 2, memoryGiB: 8, system: 'linux', loadBefore: 0 },
  node: 'v20',
  redis: { version: '7.0', settings: {} },
  packages: {},
  commit: 'none',
};

it('each scenario says in its title how many jobs are measured, which are no more than asked for', () => {
  const rows = rowsOf(scenarios, [new MemoryContender()], [], ASKED);
  const result = {
    startedAt: '',
    jobs: ASKED,
    rounds: 1,
    surroundings,
    terms: { memory: [] },
    rows,
    samples: [],
  };
  const text = render(result);
  for (const scenario of scenarios) {
    const jobs = jobsOf(scenario, ASKED);
    expect(Number.isInteger(jobs) && jobs > 0 && jobs <= ASKED).toBe(true);
    expect(text).toContain(`${scenario.title} · ${jobs.toLocaleString('en')} jobs`);
  }
});

it('no scenario comes twice', () => {
  const names = scenarios.map(({ name }) => name);
  expect(names).toEqual([...new Set(names)]);
});
