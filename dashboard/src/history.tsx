import type { Percentiles, SeriesView } from '../../lib/subpaths/dashboard/series.js';
import { usePoll, type Polled } from './api.js';
import { Chart } from './chart.js';
import { go, href, now, query } from './state.js';
import { Card } from './widgets.js';

/** Charts of the counters by minute. The address has the time that they show. */

const HOURS = ['1', '6', '24', '72'];

export function hoursOf(): string {
  const given = query.value.get('hours') ?? '';
  return HOURS.includes(given) ? given : '1';
}

/** The jobs that charts show: those with a name, or those that ran on a host. */
export type Charted = { readonly name: string } | { readonly host: string };

/** The jobs that the open address names; null for all. */
export function chartedJobs(): Charted | null {
  const [name, host] = [query.value.get('name'), query.value.get('host')];
  if (name !== null) return { name };
  return host === null ? null : { host };
}

/** @param only null for all jobs. */
export function useSeries(path: string | null, only: Charted | null = null): Polled<SeriesView> {
  const polled = usePoll<SeriesView>(path && href(path, { hours: hoursOf(), ...only }), 10_000);
  // The old chart stays until the data of another time is loaded, so that the buttons do not move.
  return { ...polled, data: polled.last && withoutPart(polled.last) };
}

/**
 * Leaves out the last step if it is not over, because it would look like a drop. The counts of a long step
 * are extrapolated to the whole step.
 */
function withoutPart(series: SeriesView): SeriesView {
  const { times, run, wait, stepMs } = series;
  const start = times.at(-1) ?? 0;
  if (start + stepMs <= now.peek()) return series;
  if (stepMs > 300_000) {
    const share = Math.min(1, Math.max(60_000, now.peek() - start) / stepMs);
    return { ...series, ...countsOf(series, (all) => [...all.slice(0, -1), (all.at(-1) ?? 0) / share]) };
  }
  return {
    ...series,
    times: times.slice(0, -1),
    ...countsOf(series, (all) => all.slice(0, -1)),
    ...(run && { run: withoutLast(run) }),
    ...(wait && { wait: withoutLast(wait) }),
  };
}

function countsOf(
  { added, completed, failed, dead }: SeriesView,
  change: (all: readonly number[]) => readonly number[],
) {
  return { added: change(added), completed: change(completed), failed: change(failed), dead: change(dead) };
}

type Times = Percentiles<readonly (number | null)[]>;

function withoutLast({ p50, p95, p99 }: Times): Times {
  return { p50: p50.slice(0, -1), p95: p95.slice(0, -1), p99: p99.slice(0, -1) };
}

interface ChoiceProps {
  label: string;
  name: string;
  choices: readonly string[];
  chosen: string;
  unit: string;
}

/** Buttons that change a parameter of the open address. */
function Choice({ label, name, choices, chosen, unit }: ChoiceProps) {
  const params = Object.fromEntries(query.value);
  const { pathname } = location;
  return (
    <span class="row" role="group" aria-label={label}>
      {choices.map((one) => (
        <button
          key={one}
          type="button"
          class="small"
          aria-pressed={one === chosen}
          onClick={() => go(href(pathname, { ...params, [name]: one }), true)}
        >
          {one} {unit}
        </button>
      ))}
    </span>
  );
}

const Hours = () => <Choice label="Time" name="hours" choices={HOURS} chosen={hoursOf()} unit="h" />;

interface ChartProps {
  series: SeriesView;
  /** The jobs of the chart, if not all. */
  only?: Charted | null;
}

function titleOf(only: Charted | null): string {
  if (only === null) return 'Jobs';
  return 'host' in only ? `Jobs on ${only.host}` : `Jobs ${only.name}`;
}

export function JobsChart({ series, only = null }: ChartProps) {
  const minutes = series.stepMs / 60_000;
  const { added, completed, failed, dead } = countsOf(series, (all) => all.map((count) => count / minutes));
  return (
    <Card title={`${titleOf(only)} per minute`} id="rate" side={<Hours />}>
      <Chart
        times={series.times}
        label="Jobs per minute: added, completed and dead ones, and failed attempts"
        lines={[
          // A process that only adds jobs may have no history.
          ...(added.some((count) => count > 0) ? [{ label: 'added', color: '--info', values: added }] : []),
          { label: 'completed', color: '--good', values: completed },
          { label: 'failed attempts', color: '--warn', values: failed },
          { label: 'dead', color: '--bad', values: dead },
        ]}
      />
    </Card>
  );
}

const SHARES = ['50', '95', '99'] as const;

/** Times of runs and, unless it is the chart of a host, of waits. */
export function TimesChart({ series, only = null }: ChartProps) {
  const { run, wait } = series;
  if (!run || !wait) return null;
  const given = query.value.get('share') ?? '';
  const share = SHARES.find((one) => one === given) ?? '95';
  const isOfHost = only !== null && 'host' in only;
  const what = only === null ? '' : `of ${isOfHost ? `runs on ${only.host}` : only.name} `;
  return (
    <Card
      title={`How long ${share} % ${what}take at most (≈)`}
      id="times"
      side={<Choice label="Share" name="share" choices={SHARES} chosen={share} unit="%" />}
    >
      <Chart
        times={series.times}
        label={`${share}th percentile of the time of runs${isOfHost ? '' : ' and of waits'}`}
        isTime
        lines={[
          { label: 'run', color: '--accent', values: run[`p${share}`] },
          ...(isOfHost ? [] : [{ label: 'wait', color: '--violet', values: wait[`p${share}`] }]),
        ]}
      />
    </Card>
  );
}
