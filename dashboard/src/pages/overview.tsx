import { useEffect } from 'preact/hooks';
import type { Attention, OverviewView, QueueView } from '../../../lib/subpaths/dashboard/views.js';
import { usePoll } from '../api.js';
import { compact, plural, span } from '../format.js';
import { JobsChart, useSeries } from '../history.js';
import { rates, sample, waitingOf } from '../samples.js';
import { href, queuePath } from '../state.js';
import { Card, Chart, Empty, Spark, Table, Tile, Waiting } from '../widgets.js';

const EVERY_MS = 3_000;

export function useOverview() {
  const polled = usePoll<OverviewView>('overview', EVERY_MS);
  const { data } = polled;
  useEffect(() => {
    if (data) sample(data);
  }, [data]);
  return polled;
}

export function Overview() {
  const { data, error } = useOverview();
  if (!data) return <Waiting error={error} />;
  const { queues, attention } = data;
  const sum = (field: keyof QueueView['counts']) =>
    queues.reduce((all, { counts }) => all + counts[field], 0);
  const oldest = queues.reduce<number | null>(
    (max, { oldestWaitingMs: ms }) => (ms === null ? max : Math.max(max ?? 0, ms)),
    null,
  );
  const slots = queues.reduce((all, queue) => all + queue.slots, 0);
  const { processed, failed } = rates();
  const done = queues.reduce((all, { today }) => all + today.processed, 0);
  const bad = queues.reduce((all, { today }) => all + today.failed, 0);
  return (
    <>
      <h1>Overview</h1>
      <div class="tiles">
        <Tile
          label="Waiting"
          value={compact(sum('waiting'))}
          note={oldest === null ? 'nothing waits long' : `oldest ${span(oldest)}`}
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
          note="did not make it"
          to="dead"
          {...(sum('dead') > 0 && { tone: 'bad' as const })}
        />
        <Tile
          label="Done today"
          value={compact(done)}
          note={`${compact(Math.round(processed.at(-1) ?? 0))} per min now`}
          tone="good"
        />
        <Tile
          label="Failed attempts today"
          value={compact(bad)}
          note={`${compact(Math.round(failed.at(-1) ?? 0))} per min now`}
        />
      </div>
      <Card title="Needs attention" id="attention">
        {attention.length === 0 ? (
          <Empty title="All is well.">
            Queues without workers, old jobs, dead jobs, late schedules and risky settings of Redis are listed
            here.
          </Empty>
        ) : (
          <ul class="attention">
            {attention.map((one, at) => (
              <Item key={at} one={one} />
            ))}
          </ul>
        )}
      </Card>
      <History />
      <Card title="Queues" id="queues">
        <QueueTable queues={queues} />
      </Card>
    </>
  );
}

/** The counters of Redis; where no process counts, what this page has seen. */
function History() {
  const { data: series } = useSeries('series');
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
          { label: 'failed attempts', color: '--bad', values: failed },
        ]}
      />
      <p class="faint">
        For the last 72 hours, with times of runs and waits, set history: true in QueueModule.forRoot().
      </p>
    </Card>
  );
}

function Item({ one }: { one: Attention }) {
  const { queue, page, level, text } = one;
  const to =
    page === 'dead'
      ? href('dead', { queue })
      : page === 'queue' && queue !== undefined
        ? queuePath(queue)
        : (page ?? 'queues');
  return (
    <li class={level}>
      <a href={to}>
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
  if (!data) return <Waiting error={error} />;
  return (
    <>
      <h1>Queues</h1>
      <Card>
        <QueueTable queues={data.queues} />
      </Card>
    </>
  );
}

function QueueTable({ queues }: { queues: readonly QueueView[] }) {
  if (queues.length === 0)
    return (
      <Empty title="There is no queue here.">
        Register one with QueueModule.registerQueue(), or ask for the right to see them.
      </Empty>
    );
  return (
    <Table
      label="Queues"
      head={[
        'Queue',
        'Waiting',
        '',
        'Running',
        'Delayed',
        'Dead',
        'Oldest',
        'Done today',
        'Failed',
        'Workers',
      ]}
    >
      {queues.map((queue) => (
        <tr key={queue.name} data-row>
          <th scope="row">
            <a href={queuePath(queue.name)}>{queue.name}</a>
            {queue.paused && <span class="badge warn">paused</span>}
          </th>
          <td class="num">{compact(queue.counts.waiting)}</td>
          <td class="wide">
            <Spark
              values={waitingOf(queue.name)}
              label={`Waiting jobs of ${queue.name} in the last minutes`}
            />
          </td>
          <td class="num">
            {compact(queue.counts.active)} <span class="faint">/ {queue.slots}</span>
          </td>
          <td class="num">{compact(queue.counts.delayed)}</td>
          <td class={`num ${queue.counts.dead > 0 ? 'bad' : ''}`}>{compact(queue.counts.dead)}</td>
          <td class="num">{queue.oldestWaitingMs === null ? '–' : span(queue.oldestWaitingMs)}</td>
          <td class="num">{compact(queue.today.processed)}</td>
          <td class="num">{compact(queue.today.failed)}</td>
          <td class="num">{queue.consumers === 0 ? <span class="badge bad">none</span> : queue.consumers}</td>
        </tr>
      ))}
    </Table>
  );
}
