import { Fragment } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import type { QueueTimes, SeriesView } from '../../../lib/subpaths/dashboard/series.js';
import type { Attention, OverviewView, QueueView } from '../../../lib/subpaths/dashboard/views.js';
import { usePoll } from '../api.js';
import { Chart } from '../chart.js';
import { compact, count, percentiles, plural, span } from '../format.js';
import { JobsChart, useSeries } from '../history.js';
import { rates, sample, waitingOf } from '../samples.js';
import { pauseOrResume } from '../queue-acts.js';
import { href, me, queuePath } from '../state.js';
import { Card, Empty, Spark, Table, Tile, UnreadableQueues, Waiting } from '../widgets.js';

const EVERY_MS = 3_000;
/** Hundreds of queues take the server about a second, so they are read less often. */
const MS_PER_QUEUE = 30;
/** More items would push everything else off the page. */
const MOST_ITEMS = 10;
/** Items of one kind that are shown first. Hundreds of queues without a worker would hide everything else. */
const MOST_ALIKE = 4;
/** Rows of a list. Thousands of them block the browser for many seconds at each reading. */
const MOST_ROWS = 300;

function useOverview() {
  const polled = usePoll<OverviewView>('overview', (latest) =>
    Math.max(EVERY_MS, (latest?.queues?.length ?? 0) * MS_PER_QUEUE),
  );
  const { data } = polled;
  useEffect(() => {
    if (data) sample(data);
  }, [data]);
  return polled;
}

export function Overview() {
  const { data, error } = useOverview();
  const { data: series } = useSeries('series');
  if (!data) return <Waiting error={error} />;
  const { queues, unreadable, attention, slots } = data;
  const [first, others] = divided(attention);
  const sum = (field: keyof QueueView['counts']) =>
    queues.reduce((all, { counts }) => all + counts[field], 0);
  const oldest = queues.reduce<number | null>(
    (max, { oldestWaitingMs: ms }) => (ms === null ? max : Math.max(max ?? 0, ms)),
    null,
  );
  const done = queues.reduce((all, { today }) => all + today.processed, 0);
  const bad = queues.reduce((all, { today }) => all + today.failed, 0);
  const perMinute = rateNow(series);
  return (
    <>
      <h1>Overview</h1>
      <UnreadableQueues queues={{ ...series?.unreadable, ...unreadable }} />
      <div class="tiles">
        <Tile
          label="Waiting"
          value={compact(sum('waiting'))}
          note={oldest !== null ? `oldest ${span(oldest)}` : sum('waiting') > 0 ? 'retries' : 'none waits'}
        />
        <Tile
          label="Running"
          value={compact(sum('active'))}
          note={`of ${plural(slots, 'slot')}`}
          to="workers"
        />
        <Tile label="Delayed" value={compact(sum('delayed'))} note="and retries" />
        <Tile
          label="Dead"
          value={compact(sum('dead'))}
          note="failed for good"
          to="dead"
          {...(sum('dead') > 0 && { tone: 'bad' as const })}
        />
        <Tile label="Done today" value={compact(done)} {...noteOf(perMinute?.completed)} tone="good" />
        <Tile label="Failed attempts today" value={compact(bad)} {...noteOf(perMinute?.failed)} />
      </div>
      <Card title="Needs attention" id="attention">
        {attention.length === 0 ? (
          <Empty title="Nothing needs attention.">
            Queues without workers, full queues, old jobs, dead jobs, jobs without a handler, late or paused
            schedules and risky settings of Redis are listed here.
          </Empty>
        ) : (
          <>
            <Items list={first} />
            {others.length > 0 && (
              <details>
                <summary>{count(others.length)} more</summary>
                <Items list={others.slice(0, MOST_ROWS)} />
                {others.length > MOST_ROWS && (
                  <p class="faint">{count(others.length - MOST_ROWS)} more are not listed.</p>
                )}
              </details>
            )}
          </>
        )}
      </Card>
      <History series={series} />
      <Card title="Queues" id="queues">
        <QueueTable queues={queues} series={series} />
        {queues.length > 0 && (
          <p class="only-narrow">
            <a href="queues">All numbers of the queues</a>
          </p>
        )}
      </Card>
    </>
  );
}

/**
 * The rate in the last complete step of the counters. If no process writes counters, the latest rate that
 * this page has measured; undefined before the first.
 */
function rateNow(series: SeriesView | undefined): { completed: number; failed: number } | undefined {
  if (series?.isCounted) {
    const minutes = series.stepMs / 60_000;
    return {
      completed: (series.completed.at(-1) ?? 0) / minutes,
      failed: (series.failed.at(-1) ?? 0) / minutes,
    };
  }
  const { processed, failed } = rates();
  const completed = processed.at(-1);
  return completed === undefined ? undefined : { completed, failed: failed.at(-1) ?? 0 };
}

function noteOf(perMinute: number | undefined): { note?: string } {
  return perMinute === undefined ? {} : { note: `${compact(Math.round(perMinute))} per min now` };
}

/** The counters in Redis. If no process writes them, the counts since this page was opened. */
function History({ series }: { series: SeriesView | undefined }) {
  const { times, processed, failed } = rates();
  if (!series) return null;
  if (series.isCounted) return <JobsChart series={series} />;
  return (
    <Card title="Jobs per minute" id="rate" side={<span class="faint">since this page was opened</span>}>
      <Chart
        times={times}
        label="Completed jobs and failed attempts per minute"
        lines={[
          { label: 'completed', color: '--good', values: processed },
          { label: 'failed attempts', color: '--warn', values: failed },
        ]}
      />
      <p class="faint">
        With history: true in QueueModule.forRoot(), this shows the last 72 hours and times of runs and waits,
        once jobs have run.
      </p>
    </Card>
  );
}

/** The items that are shown first, and the others, both in their order. */
function divided(all: readonly Attention[]): [Attention[], Attention[]] {
  if (all.length <= MOST_ITEMS) return [[...all], []];
  const alike = new Map<string, number>();
  const first = new Set<Attention>();
  for (const one of all) {
    const kind = `${one.level} ${one.page ?? ''}`;
    const number = (alike.get(kind) ?? 0) + 1;
    alike.set(kind, number);
    if (number <= MOST_ALIKE && first.size < MOST_ITEMS) first.add(one);
  }
  return [[...first], all.filter((one) => !first.has(one))];
}

function Items({ list }: { list: readonly Attention[] }) {
  return (
    <ul class="attention">
      {list.map((one, at) => (
        <Item key={at} one={one} />
      ))}
    </ul>
  );
}

function placeOf({ queue, page = 'queues' }: Attention): string {
  if (page === 'dead') return href('dead', { queue });
  if (queue === undefined) return page;
  if (page === 'jobs') return `${queuePath(queue)}/jobs`;
  if (page === 'delayed') return href(`${queuePath(queue)}/jobs`, { state: 'delayed' });
  return page === 'queue' ? queuePath(queue) : page;
}

function Item({ one }: { one: Attention }) {
  const { queue, level, text } = one;
  return (
    <li class={level}>
      <a href={placeOf(one)}>
        <span class="mark" aria-hidden="true">
          {level === 'bad' ? '!' : 'i'}
        </span>
        <span>
          {queue !== undefined && <strong>{queue} </strong>}
          {text}
        </span>
      </a>
    </li>
  );
}

export function Queues() {
  const { data, error } = useOverview();
  const { data: series } = useSeries('series');
  if (!data) return <Waiting error={error} />;
  return (
    <>
      <h1>Queues</h1>
      <UnreadableQueues queues={{ ...series?.unreadable, ...data.unreadable }} />
      <Card>
        <QueueTable queues={data.queues} series={series} />
      </Card>
    </>
  );
}

function QueueTable({ queues, series }: { queues: readonly QueueView[]; series: SeriesView | undefined }) {
  const [isWhole, setWhole] = useState(false);
  if (queues.length === 0)
    return (
      <Empty title="There is no queue here.">
        Register one with QueueModule.registerQueue(), or ask for the right to see them.
      </Empty>
    );
  const times = series?.isCounted ? (series.byQueue ?? {}) : null;
  const pausable = new Set(me.value?.pausable);
  const canPause = queues.some(({ name }) => pausable.has(name));
  const shown = new Set(isWhole ? queues : firstOf(queues));
  return (
    <>
      <Table
        label="Queues"
        hasPairs
        head={[
          'Queue',
          'Waiting',
          '',
          'Running',
          'Delayed',
          'Dead',
          'Oldest',
          ...(times ? ['Per min', 'Run: 50, 95, 99 %', 'Wait: 50, 95, 99 %'] : []),
          'Done today',
          'Failed',
          'Workers',
          ...(canPause ? [''] : []),
        ]}
      >
        {byPrefix(queues).map(([prefix, group]) => (
          <Fragment key={prefix}>
            {group.length > 1 && group.some((queue) => shown.has(queue)) && (
              <GroupRow prefix={prefix} queues={group} columns={times ? 7 : 4} hasButtons={canPause} />
            )}
            {group
              .filter((queue) => shown.has(queue))
              .map((queue) => (
                <QueueRow
                  key={queue.name}
                  queue={queue}
                  times={times && (times[queue.name] ?? NO_TIMES)}
                  isInGroup={group.length > 1}
                  hasButtons={canPause}
                  canPause={pausable.has(queue.name)}
                />
              ))}
          </Fragment>
        ))}
      </Table>
      {shown.size < queues.length && (
        <p class="faint">
          {plural(queues.length - shown.size, 'queue')} not shown; those with jobs come first.{' '}
          <button type="button" class="small" onClick={() => setWhole(true)}>
            Show all
          </button>{' '}
          <a href="find">Find one by its name</a>
        </p>
      )}
    </>
  );
}

/** The queues that are shown first: those with jobs, then the others, both by name. */
function firstOf(queues: readonly QueueView[]): readonly QueueView[] {
  if (queues.length <= MOST_ROWS) return queues;
  const isIdle = ({ counts }: QueueView) => Number(Object.values(counts).every((jobs) => jobs === 0));
  return queues
    .toSorted((a, b) => isIdle(a) - isIdle(b) || collator.compare(a.name, b.name))
    .slice(0, MOST_ROWS);
}

const NONE = { p50: null, p95: null, p99: null };
const NO_TIMES: QueueTimes = { perMinute: 0, run: NONE, wait: NONE, runByName: {} };

/**
 * Groups of queues whose names have the same part before the first dot, in the order of the first queue of
 * each group.
 */
/** `shop.9` comes before `shop.10`. */
const collator = new Intl.Collator('en', { numeric: true });

function byPrefix(queues: readonly QueueView[]): [string, QueueView[]][] {
  const groups = new Map<string, QueueView[]>();
  for (const queue of queues.toSorted((a, b) => collator.compare(a.name, b.name))) {
    const prefix = queue.name.split('.', 1)[0]!;
    const group = groups.get(prefix);
    if (group) group.push(queue);
    else groups.set(prefix, [queue]);
  }
  return [...groups];
}

/** The sums of a group of queues. */
function GroupRow({
  prefix,
  queues,
  columns,
  hasButtons,
}: {
  prefix: string;
  queues: readonly QueueView[];
  /** How many columns are left empty before the last number. */
  columns: number;
  /** Whether the table has a column of buttons. */
  hasButtons: boolean;
}) {
  const sum = (of: (queue: QueueView) => number) => queues.reduce((all, queue) => all + of(queue), 0);
  return (
    <tr class="group">
      <th scope="row">
        {prefix}.* <span class="faint">{queues.length} queues</span>
      </th>
      <td class="num">{compact(sum(({ counts }) => counts.waiting))}</td>
      <td class="wide" />
      <td class="num">
        {compact(sum(({ counts }) => counts.active))} <span class="faint">/ {sum(({ slots }) => slots)}</span>
      </td>
      <td class="num">{compact(sum(({ counts }) => counts.delayed))}</td>
      <td class="num">{compact(sum(({ counts }) => counts.dead))}</td>
      {Array.from({ length: columns - 3 }, (_, at) => (
        // The first two columns have numbers, so their headings are aligned like numbers.
        <td key={at} class={at < 2 ? 'num' : ''} />
      ))}
      <td class="num">{compact(sum(({ today }) => today.processed))}</td>
      <td class="num">{compact(sum(({ today }) => today.failed))}</td>
      <td />
      {hasButtons && <td />}
    </tr>
  );
}

/** A name that breaks behind a separator rather than within a word. */
function Breakable({ name }: { name: string }) {
  return name.split(/(?<=[._-])/).map((part, at) => (
    <Fragment key={at}>
      {at > 0 && <wbr />}
      {part}
    </Fragment>
  ));
}

function QueueRow({
  queue,
  times,
  isInGroup,
  hasButtons,
  canPause,
}: {
  queue: QueueView;
  times: QueueTimes | null;
  isInGroup: boolean;
  hasButtons: boolean;
  canPause: boolean;
}) {
  const { name, counts, paused, slots, oldestWaitingMs, today, consumers } = queue;
  return (
    <tr data-row class={isInGroup ? 'member' : ''}>
      <th scope="row">
        <a href={queuePath(name)}>
          <Breakable name={name} />
        </a>{' '}
        {paused && <span class="badge warn">paused</span>}
      </th>
      <td class="num">{compact(counts.waiting)}</td>
      <td class="wide">
        <Spark values={waitingOf(name)} label={`Waiting jobs of ${name} in the last minutes`} />
      </td>
      <td class="num">
        {compact(counts.active)} <span class="faint">/ {slots}</span>
      </td>
      <td class="num">{compact(counts.delayed)}</td>
      <td class={`num ${counts.dead > 0 ? 'bad' : ''}`}>{compact(counts.dead)}</td>
      <td class="num">{oldestWaitingMs === null ? '–' : span(oldestWaitingMs)}</td>
      {times && (
        <>
          <td class="num">{compact(Math.round(times.perMinute))}</td>
          <td>{percentiles(times.run)}</td>
          <td>{percentiles(times.wait)}</td>
        </>
      )}
      <td class="num">{compact(today.processed)}</td>
      <td class="num">{compact(today.failed)}</td>
      {/* If times are shown, this value is the last of an odd number, so it gets a separate line on a narrow screen. */}
      <td class={times ? '' : 'num'}>{consumers === 0 ? <span class="badge bad">none</span> : consumers}</td>
      {hasButtons && (
        <td>
          {canPause && (
            <button
              type="button"
              class="small"
              aria-label={`${paused ? 'Resume' : 'Pause'} ${name}`}
              onClick={() => void pauseOrResume(name, paused)}
            >
              {paused ? 'Resume' : 'Pause'}
            </button>
          )}
        </td>
      )}
    </tr>
  );
}
