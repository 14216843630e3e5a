import type { SeriesView } from '../../lib/subpaths/dashboard/series.js';
import { usePoll, type Polled } from './api.js';
import { span } from './format.js';
import { go, href, now, query } from './state.js';
import { Card, Chart } from './widgets.js';

/** Charts of the counters by minute, over a time that the address has. */

const HOURS = ['1', '6', '24', '72'];

function hoursOf(): string {
  const given = query.value.get('hours') ?? '';
  return HOURS.includes(given) ? given : '1';
}

export function useSeries(path: string): Polled<SeriesView> {
  const polled = usePoll<SeriesView>(href(path, { hours: hoursOf() }), 10_000);
  return { ...polled, data: polled.data && withoutPart(polled.data) };
}

/** Without the minutes that are not over, which would look like a fall. */
function withoutPart(series: SeriesView): SeriesView {
  const end = (series.times.at(-1) ?? 0) + series.stepMs;
  if (series.stepMs > 300_000 || end <= now.peek()) return series;
  const { times, completed, failed, runP95, waitP95 } = series;
  return {
    ...series,
    times: times.slice(0, -1),
    completed: completed.slice(0, -1),
    failed: failed.slice(0, -1),
    ...(runP95 && { runP95: runP95.slice(0, -1) }),
    ...(waitP95 && { waitP95: waitP95.slice(0, -1) }),
  };
}

/** The pages of the same time go on in the address that is open. */
function Hours() {
  const params = Object.fromEntries(query.value);
  const { pathname } = location;
  return (
    <span class="row" role="group" aria-label="Time">
      {HOURS.map((hours) => (
        <button
          key={hours}
          type="button"
          class="small"
          aria-pressed={hours === hoursOf()}
          onClick={() => go(href(pathname, { ...params, hours }), true)}
        >
          {hours} h
        </button>
      ))}
    </span>
  );
}

export function JobsChart({ series }: { series: SeriesView }) {
  const minutes = series.stepMs / 60_000;
  const perMinute = (values: readonly number[]) => values.map((value) => value / minutes);
  return (
    <Card title="Jobs per minute" id="rate" side={<Hours />}>
      <Chart
        times={series.times}
        label="Completed jobs and failed attempts per minute"
        lines={[
          { label: 'completed', color: '--good', values: perMinute(series.completed) },
          { label: 'failed attempts', color: '--bad', values: perMinute(series.failed) },
        ]}
      />
    </Card>
  );
}

export function TimesChart({ series }: { series: SeriesView }) {
  if (!series.runP95 || !series.waitP95) return null;
  return (
    <Card title="How long 95 % take" id="times" side={<span class="faint">at most</span>}>
      <Chart
        times={series.times}
        label="95th percentile of the time of runs and of waits"
        format={span}
        lines={[
          { label: 'run', color: '--accent', values: series.runP95 },
          { label: 'wait', color: '--violet', values: series.waitP95 },
        ]}
      />
    </Card>
  );
}
