import { isBlocked } from '../../../lib/contract/process-verbs.js';
import type { WorkersView, WorkerView } from '../../../lib/subpaths/dashboard/views.js';
import type { Percentiles, SeriesView } from '../../../lib/subpaths/dashboard/series.js';
import { post, usePoll } from '../api.js';
import { ask, attempt } from '../dialogs.js';
import { percentiles, plural, span } from '../format.js';
import { jobPath, me, now, queuePath } from '../state.js';
import { Card, Empty, Table, Waiting } from '../widgets.js';

export function WorkersPage() {
  const { data, error } = usePoll<WorkersView>('workers', 3_000);
  const { data: series } = usePoll<SeriesView>('series?hours=6', 30_000);
  if (!data) return <Waiting error={error} />;
  return (
    <>
      <h1>Workers</h1>
      <p class="faint">
        {plural(data.workers.length, 'process').replace('processs', 'processes')} of this prefix.
        {data.maxReportMs > 0 && ` Running jobs are as last reported, at most ${span(data.maxReportMs)} ago.`}
      </p>
      {data.silent.length > 0 && <Silent workers={data.silent} />}
      {data.workers.length === 0 ? (
        <Card>
          <Empty title="No worker processes.">
            Start the application with the role worker or both, and a @Processor.
          </Empty>
        </Card>
      ) : (
        data.workers.map((worker) => <Process key={worker.id} worker={worker} view={data} series={series} />)
      )}
    </>
  );
}

function Silent({ workers }: { workers: readonly WorkerView[] }) {
  return (
    <Card title="Silent processes">
      <p class="faint">
        They went silent in the last ten minutes: they were killed, hang, or do not reach Redis. Other workers
        run their jobs.
      </p>
      <Table label="Silent processes" head={['Process', 'Silent for', 'Ran for', 'Queues', 'Version']}>
        {workers.map(({ id, host, pid, silentMs = 0, startedAt, pools, versions }) => (
          <tr key={id} data-row>
            <th scope="row">
              {host} · {pid}
            </th>
            <td class="num">{span(silentMs)}</td>
            <td class="num">{span(Math.max(0, now.value - silentMs - startedAt))}</td>
            <td class="text">{[...new Set(pools.flatMap(({ queues }) => queues))].join(', ')}</td>
            <td class="text">{versions.godwit}</td>
          </tr>
        ))}
      </Table>
    </Card>
  );
}

interface ProcessProps {
  worker: WorkerView;
  view: WorkersView;
  series: SeriesView | undefined;
}

function Process({ worker, view, series }: ProcessProps) {
  const { host, pid, state, versions, startedAt, pools } = worker;
  const jobs = pools.flatMap((pool) => pool.jobs).toSorted((a, b) => a.since - b.since);
  const running = pools.reduce((sum, pool) => sum + pool.running, 0);
  const slots = pools.reduce((sum, pool) => sum + pool.concurrency, 0);
  const { pausable = [], cancellable = [] } = me.value ?? {};
  const queues = [...new Set(pools.flatMap((pool) => pool.queues))];
  // An order to a process is one to each of its queues.
  const canPause = [...queues, ...(worker.moreQueues ?? [])].every((queue) => pausable.includes(queue));
  return (
    <Card
      title={`${host} · ${pid}`}
      id={`process-${worker.id}`}
      side={
        <span class="faint">
          <span class={`badge ${state === 'running' ? 'good' : 'warn'}`}>{state}</span>{' '}
          {isBlocked(worker) && (
            <span class="badge warn" title="The longest block of its event loop in the last minute">
              blocked for {span(worker.blockedMs)}
            </span>
          )}{' '}
          up {span(Math.max(0, now.value - startedAt))} · godwit {versions.godwit} · node {versions.node}
        </span>
      }
    >
      <p>
        <progress max={Math.max(1, slots)} value={running} aria-label="Slots in use" /> {running} of{' '}
        {plural(slots, 'slot')} in use ·{' '}
        {queues.map((queue, at) => (
          <span key={queue}>
            {at > 0 && ', '}
            <a href={queuePath(queue)}>{queue}</a>
            {pools.some((pool) => pool.paused.includes(queue)) && (
              <span class="badge warn">
                {pools.some((pool) => pool.quiet.includes(queue)) ? 'quiet here' : 'paused here'}
              </span>
            )}
          </span>
        ))}
        {worker.morePools > 0 && ` and ${worker.morePools} more pools`}
      </p>
      {jobs.length === 0 ? (
        <p class="faint">No running jobs.</p>
      ) : (
        <Table
          label={`Running jobs of process ${pid}`}
          isFixed
          head={[
            'Runs for',
            ...(series?.isCounted ? ['Usually: 50, 95, 99 %'] : []),
            'Job',
            'Queue',
            'Id',
            'Attempt',
            '',
          ]}
        >
          {jobs.map((job) => (
            <tr key={`${job.queue}/${job.id}`} data-row>
              <td class="num">{span(Math.max(0, view.now - job.since))}</td>
              {series?.isCounted && (
                <td>
                  <Usual
                    ms={view.now - view.maxReportMs - job.since}
                    usual={series.byQueue?.[job.queue]?.runByName[job.name]}
                  />
                </td>
              )}
              <th scope="row">{job.name}</th>
              <td class="text">{job.queue}</td>
              <td class="id">
                <a href={jobPath(job.queue, job.id)}>{job.id}</a>
              </td>
              <td class="num">{job.attempt}</td>
              <td>
                {cancellable.includes(job.queue) && (
                  <button type="button" class="danger" onClick={() => void cancel(job.queue, job.id)}>
                    Cancel
                  </button>
                )}
              </td>
            </tr>
          ))}
        </Table>
      )}
      {canPause && state !== 'quiet' && (
        <div class="row">
          <button type="button" onClick={() => void pauseOrResume(worker)}>
            {isPaused(worker) ? 'Resume' : 'Pause'}
          </button>
          <button type="button" class="danger" onClick={() => void makeQuiet(worker)}>
            Quiet
          </button>
        </div>
      )}
    </Card>
  );
}

/**
 * The 50th, 95th and 99th percentile of the runs of this job name, and how many times longer than the 95th
 * this run is.
 *
 * @param ms how long the run took at least: it may have ended since its process reported it.
 */
function Usual({ ms, usual }: { ms: number; usual: Percentiles<number | null> | undefined }) {
  const { p95 = null } = usual ?? {};
  if (p95 === null) return <span class="faint">–</span>;
  // A run of less than a second needs no attention.
  const times = ms < 1_000 ? 0 : ms / Math.max(1, p95);
  return (
    <>
      {percentiles(usual)}{' '}
      {times >= 1.5 && (
        <span class={`badge ${times >= 3 ? 'bad' : 'warn'}`}>
          ≈ {times < 10 ? times.toFixed(1) : Math.round(times)} × as long
        </span>
      )}
    </>
  );
}

const isPaused = ({ state, pools }: WorkerView) =>
  state === 'paused' || pools.some(({ paused, quiet }) => paused.some((queue) => !quiet.includes(queue)));

const orderPath = ({ id }: WorkerView, order: string) => `workers/${encodeURIComponent(id)}/${order}`;

async function pauseOrResume(worker: WorkerView): Promise<void> {
  const order = isPaused(worker) ? 'resume' : 'pause';
  await attempt(`Process ${worker.pid} was told to ${order}. It does so within some seconds.`, () =>
    post(orderPath(worker, order)),
  );
}

async function makeQuiet(worker: WorkerView): Promise<void> {
  const answer = await ask({
    title: 'No more jobs for this process?',
    text: `Process ${worker.pid} on ${worker.host} ends its running jobs and claims no more until it is restarted. Resume does not undo this.`,
    button: 'Make it quiet',
    isDanger: true,
  });
  if (answer === null) return;
  await attempt(`Process ${worker.pid} was told to claim no more jobs.`, () =>
    post(orderPath(worker, 'quiet')),
  );
}

async function cancel(queue: string, id: string): Promise<void> {
  const reason = await ask({
    title: 'Cancel this run?',
    text: `Job ${id} of queue ${queue}: its signal aborts within some seconds. If its handler returns anyway, the job is completed.`,
    button: 'Cancel the job',
    isDanger: true,
    field: { label: 'Reason', value: 'cancelled on the dashboard' },
  });
  if (reason === null) return;
  await attempt('The job was told to stop.', () =>
    post(`${jobPath(queue, id)}/cancel`, reason === '' ? {} : { reason }),
  );
}
