import { JOB_STATES } from '../../../lib/job/job-state.js';
import type { SeriesView } from '../../../lib/subpaths/dashboard/series.js';
import type { QueueDetail, QueueMemory } from '../../../lib/subpaths/dashboard/views.js';
import { del, post, usePoll } from '../api.js';
import { BulkActs } from '../bulk-acts.js';
import { ask, attempt } from '../dialogs.js';
import { axisTime, bytes, compact, count, moment, percentiles, plural, span } from '../format.js';
import { chartedJobs, hoursOf, JobsChart, TimesChart, useSeries } from '../history.js';
import { go, href, query, queuePath } from '../state.js';
import { Limits } from '../limits.js';
import { pauseOrResume } from '../queue-acts.js';
import { Card, Empty, Table, Tile, useSubject, Waiting } from '../widgets.js';

export function QueuePage({ queue }: { queue: string }) {
  const at = queuePath(queue);
  useSubject(queue);
  const group = query.value.get('group') ?? '';
  const { data, error } = usePoll<QueueDetail>(href(at, { group }), 3_000);
  const { data: series } = useSeries(`${at}/series`);
  const charted = chartedJobs();
  const { data: ofCharted } = useSeries(charted && `${at}/series`, charted);
  const shown = charted === null ? series : ofCharted;
  if (!data) return <Waiting error={error} />;
  const { counts, rights, byName, days, today } = data;
  const names = Object.entries(byName).toSorted(
    ([, a], [, b]) => b.processed + b.failed - a.processed - a.failed,
  );
  return (
    <>
      <p class="crumbs">
        <a href="queues">Queues</a> /
      </p>
      <div class="heading">
        <h1>
          {queue} {data.paused && <span class="badge warn">paused</span>}
        </h1>
        <div class="row">
          {rights.includes('queue.pause') && (
            <button type="button" onClick={() => void pauseOrResume(queue, data.paused)}>
              {data.paused ? 'Resume' : 'Pause'}
            </button>
          )}
          {rights.includes('queue.repair') && (
            <button type="button" onClick={() => void check(queue)}>
              Check
            </button>
          )}
          {rights.includes('queue.obliterate') && (
            <button type="button" class="danger" onClick={() => void obliterate(queue)}>
              Delete
            </button>
          )}
        </div>
      </div>
      <div class="tiles">
        {JOB_STATES.map((state) => (
          <Tile
            key={state}
            label={state === 'active' ? 'running' : state}
            value={compact(counts[state])}
            to={href(`${at}/jobs`, { state })}
            {...(state === 'dead' && counts.dead > 0 && { tone: 'bad' as const })}
            {...(state === 'waiting' &&
              data.oldestWaitingMs !== null && { note: `oldest ${span(data.oldestWaitingMs)}` })}
            {...(state === 'active' && {
              note: `${plural(data.slots, 'slot')}, ${data.consumers === 1 ? '1 process' : `${data.consumers} processes`}`,
            })}
            {...(state === 'completed' && { note: 'kept by retention' })}
          />
        ))}
      </div>
      <Memory at={at} />
      {data.consumers === 0 && (
        <p class="notice bad">No process works on this queue. Start one that has a @Processor('{queue}').</p>
      )}
      {!data.paused && data.pausedPlace !== null && (
        <p class="notice warn">
          It is paused in {data.pausedPlace}: see <a href="workers">Workers</a>.
        </p>
      )}
      <BulkActs queue={queue} />
      {charted !== null && (
        <p class="row">
          The charts show{' '}
          {'host' in charted ? `jobs that ran on ${charted.host}` : `jobs with the name ${charted.name}`}.{' '}
          <a class="button small" href={href(at, { group, hours: query.value.get('hours') })}>
            All jobs
          </a>
        </p>
      )}
      {series?.isCounted && shown && (
        <>
          <JobsChart series={shown} only={charted} />
          <TimesChart series={shown} only={charted} />
        </>
      )}
      <Limits queue={data} group={group} />
      <Card title="By name" id="names" side={<span class="faint">last 7 days</span>}>
        {names.length === 0 ? (
          <Empty title="No job has ended yet.">Counters appear here once the first job has run.</Empty>
        ) : (
          <Table
            label="Counters by name of the job"
            head={[
              'Name',
              'Done',
              'Failed attempts',
              'Dead',
              'Run: 50, 95, 99 %',
              'Wait: 50, 95, 99 %',
              'Jobs',
            ]}
          >
            {names.map(([name, of]) => (
              <tr key={name}>
                <th scope="row">{name === '' ? <i>other names</i> : name}</th>
                <td class="num">{count(of.processed)}</td>
                <td class="num">{count(of.failed)}</td>
                <td class={`num ${of.dead > 0 ? 'bad' : ''}`}>{count(of.dead)}</td>
                <td>{percentiles(series?.byName[name]?.run)}</td>
                <td>{percentiles(series?.byName[name]?.wait)}</td>
                <td>
                  {name !== '' && (
                    <>
                      <a href={href(`${at}/jobs`, { state: 'waiting', name })}>waiting</a>{' '}
                      <a href={href(`${at}/jobs`, { state: 'dead', name })}>dead</a>{' '}
                      {series?.isCounted && (
                        <a href={href(at, { group, hours: query.value.get('hours'), name })}>charts</a>
                      )}
                    </>
                  )}
                </td>
              </tr>
            ))}
          </Table>
        )}
      </Card>
      <Hosts at={at} group={group} hosts={series?.byHost ?? {}} />
      <Card title="By day" id="days" side={<span class="faint">UTC</span>}>
        <Table
          label="Counters by day"
          hasPairs
          head={['Day', 'Done', 'Failed attempts', 'Dead', 'Cancelled']}
        >
          {days.map((day) => (
            <tr key={day.date}>
              <th scope="row">{day.date}</th>
              <td class="num">{count(day.processed)}</td>
              <td class="num">{count(day.failed)}</td>
              <td class={`num ${day.dead > 0 ? 'bad' : ''}`}>{count(day.dead)}</td>
              <td class="num">{count(day.cancelled)}</td>
            </tr>
          ))}
        </Table>
      </Card>
      {today.processed + today.failed === 0 && Object.values(counts).every((jobs) => jobs === 0) && (
        <Empty title="This queue is empty.">Add a job with queue.add(name, data).</Empty>
      )}
    </>
  );
}

interface HostsProps {
  /** The address of the queue. */
  at: string;
  group: string;
  hosts: NonNullable<SeriesView['byHost']>;
}

/** The jobs that ended on each host in the time of the charts. */
function Hosts({ at, group, hosts }: HostsProps) {
  const rows = Object.entries(hosts).toSorted(
    ([, a], [, b]) => b.completed + b.failed - a.completed - a.failed,
  );
  if (rows.length === 0) return null;
  const hours = hoursOf();
  return (
    <Card title="By host" id="hosts" side={<span class="faint">last {hours} h</span>}>
      <Table
        label="Counters by host"
        head={[
          'Host',
          'Done',
          'Failed attempts',
          'Dead',
          'Run: 50, 95, 99 %',
          'Last minute with a run',
          'Jobs',
        ]}
      >
        {rows.map(([host, of]) => (
          <tr key={host}>
            <th scope="row">{host === '' ? <i>other hosts</i> : host}</th>
            <td class="num">{count(of.completed)}</td>
            <td class="num">{count(of.failed)}</td>
            <td class={`num ${of.dead > 0 ? 'bad' : ''}`}>{count(of.dead)}</td>
            <td>{percentiles(of.run)}</td>
            <td>
              <time dateTime={new Date(of.lastAt).toISOString()} title={moment(of.lastAt)}>
                {axisTime(of.lastAt, Number(hours) > 6, false)}
              </time>
            </td>
            <td>
              {host !== '' && (
                <>
                  <a href={href(`${at}/jobs`, { state: 'active', worker: host })}>running</a>{' '}
                  <a href={href(at, { group, hours: query.value.get('hours'), host })}>charts</a>
                </>
              )}
            </td>
          </tr>
        ))}
      </Table>
    </Card>
  );
}

/** Read seldom, because it asks for the size of each key. */
function Memory({ at }: { at: string }) {
  const { data } = usePoll<QueueMemory>(`${at}/memory`, 30_000);
  if (!data || data.bytes === null) return null;
  return (
    <p class="faint">
      Its jobs and schedules take ≈&nbsp;{bytes(data.bytes)} of the memory of Redis, an estimate from samples.
    </p>
  );
}

interface Report {
  readonly report: { readonly violations?: readonly unknown[]; readonly jobs?: number };
}

async function check(queue: string): Promise<void> {
  let found: number | undefined;
  const isDone = await attempt('Checked: every job is in exactly one place.', async () => {
    const { report } = await post<Report>(`${queuePath(queue)}/audit`);
    found = report.violations?.length ?? 0;
  });
  if (!isDone || !found) return;
  const sure = await ask({
    title: `${count(found)} jobs are not where they should be`,
    text: 'Repair queues jobs again that are in no list, and marks jobs as dead whose data is gone.',
    button: 'Repair them',
  });
  if (sure !== null) await attempt('Repaired.', () => post(`${queuePath(queue)}/repair`));
}

async function obliterate(queue: string): Promise<void> {
  const confirm = await ask({
    title: `Delete ${queue} with everything in it?`,
    text: 'All jobs, schedules and counters of this queue are deleted. This cannot be undone.',
    button: 'Delete the queue',
    isDanger: true,
    field: { label: `Type ${queue} to confirm`, mustBe: queue },
  });
  if (confirm === null) return;
  if (await attempt(`${queue} is deleted.`, () => del(queuePath(queue), { confirm }))) go('queues');
}
