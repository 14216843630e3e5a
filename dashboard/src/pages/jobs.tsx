import { useEffect, useState } from 'preact/hooks';
import { JOB_STATES } from '../../../lib/job/job-state.js';
import { filterInWords } from '../../../lib/subpaths/dashboard/filter-text.js';
import type { BulkView, JobListView, JobRow } from '../../../lib/subpaths/dashboard/views.js';
import { AddJob } from '../add-job.js';
import { pauseAfter, post, usePoll } from '../api.js';
import { BulkActs } from '../bulk-acts.js';
import { ask, attempt, bulk, VERBS, type BulkKind } from '../dialogs.js';
import { compact, count, micros, plural } from '../format.js';
import { FILTERS, Filters, inState, SIZES } from '../job-filters.js';
import { go, href, jobPath, query, queuePath } from '../state.js';
import { Card, Empty, State, Table, Time, useCurrentInView, useSubject, Waiting } from '../widgets.js';

/** The actions on the jobs of a state. */
const ACTS: Readonly<Record<string, readonly BulkKind[]>> = {
  waiting: ['cancel', 'remove'],
  active: ['cancel'],
  delayed: ['promote', 'cancel', 'remove'],
  completed: ['remove'],
  dead: ['retry', 'remove'],
  cancelled: ['remove'],
};

export function JobsPage({ queue }: { queue: string }) {
  const params = query.value;
  const state = params.get('state') ?? 'waiting';
  const cursor = params.get('cursor');
  const size = SIZES.find((one) => String(one) === params.get('limit')) ?? 50;
  const [picked, setPicked] = useState<ReadonlySet<string>>(new Set());
  const [isAdding, setAdding] = useState(false);
  const tabs = useCurrentInView(state);
  useSubject(`Jobs of ${queue}`);
  const filter = Object.fromEntries(
    FILTERS.flatMap((key) => {
      const value = params.get(key);
      return value ? [[key, value]] : [];
    }),
  );
  const at = `${queuePath(queue)}/jobs`;
  const call = href(at, { state, ...filter, order: params.get('order'), cursor, limit: String(size) });
  const { data, last, error } = usePoll<JobListView>(
    call,
    (latest) => (cursor !== null ? 0 : pauseAfter(latest?.examined ?? 0, 4_000)),
    picked.size > 0,
  );
  useEffect(() => setPicked(new Set()), [call]);
  // While a search continues, its last page stays.
  const page = data ?? (cursor !== null && last?.jobs.length === 0 ? last : undefined);
  const stop = useSearchOn(page, data !== undefined);
  if (error?.status === 404) return <Waiting error={error} />;
  const rights = last?.rights ?? [];
  const acts = (ACTS[state] ?? []).filter((kind) => rights.includes(`job.${kind}`));
  const hasFilters = Object.keys(filter).length > 0;
  const about = `all ${hasFilters ? '' : `${count(data?.total ?? 0)} `}${filterInWords({ state, ...filter })}`;
  return (
    <>
      <p class="crumbs">
        <a href="queues">Queues</a> / <a href={queuePath(queue)}>{queue}</a> /
      </p>
      <div class="heading">
        <h1>Jobs</h1>
        {rights.includes('job.add') && !isAdding && (
          <button type="button" onClick={() => setAdding(true)}>
            Add a job
          </button>
        )}
      </div>
      {isAdding && <AddJob queue={queue} name={params.get('name') ?? ''} onEnd={() => setAdding(false)} />}
      <nav class="tabs" aria-label="State" ref={tabs}>
        {JOB_STATES.map((one) => (
          <a
            key={one}
            href={href(at, inState(one, filter))}
            {...(one === state && { 'aria-current': 'page' as const })}
          >
            {one === 'active' ? 'running' : one}{' '}
            {last && <span class="faint">{compact(last.counts[one])}</span>}
          </a>
        ))}
      </nav>
      <Filters queue={queue} state={state} canReadData={rights.includes('read-data')} />
      {data?.withId && (
        <p class="notice">
          Job <a href={jobPath(queue, data.withId.id)}>{data.withId.id}</a> ({data.withId.name}) is{' '}
          <State state={data.withId.state} />
        </p>
      )}
      <BulkActs queue={queue} />
      <Card>
        {acts.length > 0 && data && data.jobs.length > 0 && (
          <div class="row acts">
            {picked.size > 0 ? (
              <>
                <span>{plural(picked.size, 'job')} selected:</span>
                {acts.map((kind) => (
                  <button
                    key={kind}
                    type="button"
                    class={kind === 'remove' ? 'danger' : ''}
                    onClick={() => void actOnPicked(queue, kind, [...picked], () => setPicked(new Set()))}
                  >
                    {VERBS[kind]} {count(picked.size)}
                  </button>
                ))}
              </>
            ) : (
              rights.includes('bulk') &&
              acts.map((kind) => (
                <button
                  key={kind}
                  type="button"
                  class={kind === 'remove' ? 'danger' : ''}
                  onClick={() => void bulk(kind, { queue, filter: { state, ...filter }, about })}
                >
                  {VERBS[kind]} {about}
                </button>
              ))
            )}
          </div>
        )}
        {!page ? (
          <Waiting error={error} />
        ) : page.jobs.length === 0 ? (
          <Nothing page={page} state={state} hasFilter={hasFilters} isSearching={stop !== null} />
        ) : (
          <Rows
            queue={queue}
            state={state}
            jobs={page.jobs}
            processes={page.processes}
            picked={picked}
            setPicked={setPicked}
            canPick={acts.length > 0}
          />
        )}
        {page && <Pages page={page} isFirst={cursor === null} stop={stop} />}
      </Card>
    </>
  );
}

async function actOnPicked(
  queue: string,
  kind: BulkKind,
  ids: readonly string[],
  onDone: () => void,
): Promise<void> {
  const isDanger = kind === 'remove' || kind === 'cancel';
  const reason = isDanger
    ? await ask({
        title: `${VERBS[kind]} ${plural(ids.length, 'job')}?`,
        text:
          kind === 'remove'
            ? 'They are deleted, with their data.'
            : 'They end as cancelled and are not retried.',
        button: VERBS[kind],
        isDanger,
        ...(kind === 'cancel' && { field: { label: 'Reason', value: 'cancelled on the dashboard' } }),
      })
    : '';
  if (reason === null) return;
  const body = { kind, ids, ...(kind === 'cancel' && { reason }) };
  const isDone = await attempt(
    ({ done }: BulkView) => `${VERBS[kind]}: done for ${count(done)} of ${plural(ids.length, 'job')}.`,
    () => post<BulkView>(`${queuePath(queue)}/actions`, body),
  );
  if (isDone) onDone();
}

function Rows({
  queue,
  state,
  jobs,
  processes,
  picked,
  setPicked,
  canPick,
}: {
  queue: string;
  state: string;
  jobs: readonly JobRow[];
  processes: JobListView['processes'];
  picked: ReadonlySet<string>;
  setPicked: (ids: ReadonlySet<string>) => void;
  canPick: boolean;
}) {
  const toggle = (id: string) => {
    const next = new Set(picked);
    if (!next.delete(id)) next.add(id);
    setPicked(next);
  };
  const isAll = jobs.every(({ id }) => picked.has(id));
  const pickAll = (
    <input
      type="checkbox"
      aria-label="Select all jobs of this page"
      checked={isAll}
      onChange={() => setPicked(isAll ? new Set() : new Set(jobs.map(({ id }) => id)))}
    />
  );
  const showsError = state === 'dead' || state === 'delayed' || state === 'waiting';
  const head = [
    ...(canPick ? [pickAll] : []),
    'Name',
    'Id',
    'Attempt',
    timeWord(state),
    // When a running job started tells also how long it runs.
    showsError ? 'Last error' : state === 'active' ? 'Worker' : 'Took',
  ];
  const filteredBy = (key: string, value: string) =>
    href(`${queuePath(queue)}/jobs`, { state, [key]: value });
  return (
    <Table label="Jobs" head={head}>
      {jobs.map((job) => (
        <tr key={job.id} data-row>
          {canPick && (
            <td>
              <input
                type="checkbox"
                data-pick
                aria-label={`Select ${job.id}`}
                checked={picked.has(job.id)}
                onChange={() => toggle(job.id)}
              />
            </td>
          )}
          <th scope="row">{job.name === '' ? <i>unreadable</i> : job.name}</th>
          <td class="id">
            <a href={jobPath(queue, job.id)}>{job.id}</a>{' '}
            {job.group !== null && (
              <a class="badge" href={filteredBy('group', job.group)}>
                group {job.group}
              </a>
            )}
            {job.priority > 0 && (
              <a class="badge" href={filteredBy('priority', String(job.priority))}>
                priority {job.priority}
              </a>
            )}
            {job.stalls > 0 && <span class="badge warn">lost {job.stalls}×</span>}
          </td>
          <td class="num">
            {job.attempt} {job.attempts !== null && <span class="faint">/ {job.attempts}</span>}
          </td>
          <td>
            <Time at={timeOf(job)} {...(job.state === 'delayed' && { none: 'after another job' })} />
          </td>
          {showsError ? (
            <td class="error">
              {job.reason && <span class="badge bad">{job.reason}</span>}{' '}
              {job.error ?? <span class="faint">–</span>}
            </td>
          ) : state === 'active' ? (
            <td class="id">
              {job.worker === null ? (
                <span class="faint">–</span>
              ) : (
                <a href={filteredBy('worker', processes[job.worker] ?? job.worker)}>
                  {processes[job.worker] ?? job.worker}
                </a>
              )}
            </td>
          ) : (
            <td class="num">{job.durationUs === null ? '–' : micros(job.durationUs)}</td>
          )}
        </tr>
      ))}
    </Table>
  );
}

function timeWord(state: string): string {
  switch (state) {
    case 'waiting':
      return 'Added';
    case 'delayed':
      return 'Due';
    case 'active':
      return 'Started';
    default:
      return 'Ended';
  }
}

function timeOf(job: JobRow): number | null {
  switch (job.state) {
    case 'waiting':
      return job.createdAt;
    case 'delayed':
      return job.dueAt;
    case 'active':
      return job.startedAt;
    default:
      return job.endedAt;
  }
}

/**
 * After "Search on", continues until a job matches or all were looked at. Returns a function that stops the search; null if it has
 * ended.
 *
 * @param page the page that is shown.
 * @param isThere whether it is the one of the address; otherwise that one is being loaded.
 */
function useSearchOn(page: JobListView | undefined, isThere: boolean): (() => void) | null {
  const at = query.value.get('cursor');
  const [stoppedAt, setStoppedAt] = useState<string | null>(null);
  const isOn =
    at !== null && stoppedAt !== at && page !== undefined && page.jobs.length === 0 && page.cursor !== null;
  useEffect(() => {
    if (isOn && isThere) go(nextOf(page), true);
  }, [isOn, isThere, page]);
  return isOn ? () => setStoppedAt(at) : null;
}

/** The address of the next page, with the number of jobs that a search has looked at. */
function nextOf({ cursor, examined }: JobListView): string {
  const params = Object.fromEntries(query.value);
  return href(location.pathname, { ...params, cursor, looked: String(lookedAt() + examined) });
}

function lookedAt(): number {
  return Number(query.value.get('looked') ?? 0) || 0;
}

function Nothing({
  page,
  state,
  hasFilter,
  isSearching,
}: {
  page: JobListView;
  state: string;
  hasFilter: boolean;
  isSearching: boolean;
}) {
  if (isSearching)
    return <Empty title="Searching …">It stops at the first page with a job that matches.</Empty>;
  if (page.cursor !== null)
    return <Empty title="Nothing matches so far.">There are more jobs to look at: go on below.</Empty>;
  if (hasFilter) return <Empty title="Nothing matches.">Clear the filters to see all {state} jobs.</Empty>;
  return <Empty title={`No job is ${state === 'active' ? 'running' : state}.`}>{HINTS[state]}</Empty>;
}

const HINTS: Readonly<Record<string, string>> = {
  waiting: 'Jobs appear here when they are added faster than they are run.',
  delayed: 'Jobs with a delay and jobs between two attempts appear here.',
  active: 'Jobs appear here while a worker runs them.',
  completed: 'Completed jobs are kept with the option retention; without it they are deleted.',
  dead: 'Jobs that used up their attempts appear here, with the reason.',
  cancelled: 'Cancelled jobs are kept with the option retention.cancelled.',
};

/** Why a search did not look at all jobs. The waiting jobs of a group are found without the others. */
function othersOf({ cursor, examined, total }: JobListView): string {
  if (cursor !== null) return ' The others were not looked at yet.';
  const isGroup = query.value.get('group') && lookedAt() + examined < total;
  return isGroup ? ' The others are of other groups.' : '';
}

function Pages({ page, isFirst, stop }: { page: JobListView; isFirst: boolean; stop: (() => void) | null }) {
  const params = Object.fromEntries(query.value);
  const { pathname } = location;
  const { examined, total, cursor, jobs } = page;
  const isSearch = FILTERS.some((key) => params[key]);
  return (
    <div class="row pages">
      <span class="faint" aria-live="polite">
        {isSearch
          ? `Looked at ${count(Math.min(lookedAt() + examined, total))} of ${plural(total, 'job')}, ${count(jobs.length)} match.${othersOf(page)}`
          : `${count(jobs.length)} of ${plural(total, 'job')}`}
      </span>
      <span class="row">
        {!isFirst && (
          <a class="button" href={href(pathname, { ...params, cursor: null, looked: null })}>
            First page
          </a>
        )}
        {stop && (
          <button type="button" onClick={stop}>
            Stop
          </button>
        )}
        {cursor !== null && !stop && (
          <a class="button" href={isSearch ? nextOf(page) : href(pathname, { ...params, cursor })}>
            {isSearch ? 'Search on' : 'Next page'}
          </a>
        )}
      </span>
    </div>
  );
}
