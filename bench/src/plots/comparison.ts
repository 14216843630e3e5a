import type { Row } from '../report/result.js';
import { brief } from '../report/words.js';
import type { Bar, BarPanel, RatioPanel } from './panels.js';

/** It is not a queue, and its bar would make all other bars tiny. */
const FLOOR = 'floor';
/** Characters of a scenario beside its ratios. */
const LONGEST = 56;

interface Headline {
  readonly scenario: string;
  readonly key: string;
  /** Shown behind it as the longer part of the bar. */
  readonly tail?: string;
  readonly title: string;
}

const HEADLINES: readonly Headline[] = [
  { scenario: 'consume', key: 'perSecond', title: 'Consume jobs, no-op handler, concurrency 100' },
  { scenario: 'consume', key: 'redisCpu', title: 'CPU of Redis per consumed job' },
  { scenario: 'add-in-flight', key: 'perSecond', title: 'Add jobs, 100 calls in flight' },
  { scenario: 'add-bulk', key: 'perSecond', title: 'Add jobs in bulk, 1,000 a call' },
  { scenario: 'pick-up', key: 'p50', tail: 'p99', title: 'Idle worker: from add to the handler' },
  { scenario: 'waiting-memory', key: 'retrying', title: 'Memory of Redis per waiting job, with retries' },
];

/** The panels that have figures. */
export function comparisonPanels(rows: readonly Row[], own: string): BarPanel[] {
  return HEADLINES.flatMap(({ scenario, key, tail, title }) => {
    const row = find(rows, scenario, key);
    const bars =
      row === undefined ? [] : barsOf(row, tail === undefined ? undefined : find(rows, scenario, tail), own);
    return bars.length === 0 ? [] : [{ title, subtitle: subtitleOf(row!, tail), bars }];
  });
}

function barsOf(row: Row, tail: Row | undefined, own: string): Bar[] {
  return Object.entries(row.contenders)
    .filter(([name]) => name !== FLOOR)
    .map(([name, { median }]) => {
      const far = tail?.contenders[name]?.median;
      return {
        name,
        value: median,
        ...(far !== undefined && { tail: far }),
        label: far === undefined ? brief(median) : `${brief(median)} / ${brief(far)}`,
        own: name === own,
      };
    });
}

function subtitleOf({ unit, better }: Row, tail: string | undefined): string {
  const words = `${unitWords(unit)}${unit === '' ? '' : ', '}${better} is better`;
  return tail === undefined ? words : `median / ${tail} in ${words}`;
}

export function unitWords(unit: string): string {
  return unit === 'jobs/s' ? 'jobs per second' : unit;
}

/** Of no key: the first row of the scenario. */
export function find(rows: readonly Row[], scenario: string, key?: string): Row | undefined {
  return rows.find((row) => row.scenario === scenario && (key === undefined || row.key === key));
}

/** A figure that says more than the first one of its scenario. */
const INSTEAD: Readonly<Record<string, string>> = { connections: 'many' };

/** The first figure of every scenario, usually the throughput: how many times better the project is. */
export function ratioPanel(rows: readonly Row[], own: string): RatioPanel {
  const names = [...new Set(rows.map(({ scenario }) => scenario))];
  const lines = names
    .map((scenario) => find(rows, scenario, INSTEAD[scenario]) ?? find(rows, scenario)!)
    .map((row) => ({ name: cut(row.scenarioTitle), ratios: timesAsGood(row, own) }))
    .filter(({ ratios }) => Object.keys(ratios).length > 0);
  const peers = [...new Set(lines.flatMap(({ ratios }) => Object.keys(ratios)))];
  return {
    title: 'Every scenario beside every peer',
    subtitle: `how many times as good ${own} is; to the right of 1 it is ahead`,
    peers,
    lines,
  };
}

/** Breaks at a word, to fit beside the plot. */
function cut(title: string): string {
  if (title.length <= LONGEST) return title;
  return `${title.slice(0, title.lastIndexOf(' ', LONGEST)).replace(/,$/, '')} …`;
}

/** Above 1: better than the other. */
export function timesAsGood({ contenders, better }: Row, own: string): Record<string, number> {
  const mine = contenders[own]?.median;
  if (!mine) return {};
  return Object.fromEntries(
    Object.entries(contenders)
      .filter(([name, { median }]) => name !== own && name !== FLOOR && median > 0)
      .map(([name, { median }]) => [name, better === 'more' ? mine / median : median / mine]),
  );
}
