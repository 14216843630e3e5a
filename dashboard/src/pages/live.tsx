import { useEffect, useState } from 'preact/hooks';
import type { LiveBatch, LiveEvent } from '../../../lib/subpaths/dashboard/live.js';
import { count, moment } from '../format.js';
import { frozen, go, href, jobPath, me, query, queuePath, ROOT } from '../state.js';
import { Card, Empty, Table } from '../widgets.js';

const MAX = 300;
const TYPES = [
  'added',
  'delayed',
  'active',
  'progress',
  'completed',
  'retrying',
  'dead',
  'stalled',
  'released',
  'removed',
  'cancelled',
  'updated',
  'paused',
  'resumed',
  'breakerOpened',
  'breakerClosed',
];

interface Row extends LiveEvent {
  readonly key: number;
}
let nextKey = 0;

/** Events as they come, while the page is visible. */
function useEvents(queue: string | null, type: string | null) {
  const [rows, setRows] = useState<readonly Row[]>([]);
  const [status, setStatus] = useState<'connecting' | 'live' | 'lost'>('connecting');
  const [skipped, setSkipped] = useState(0);
  useEffect(() => {
    let source: EventSource | undefined;
    const open = () => {
      setStatus('connecting');
      source = new EventSource(new URL(href('api/v1/events', { queue, type }), ROOT));
      source.addEventListener('open', () => setStatus('live'));
      source.addEventListener('error', () => setStatus('lost'));
      source.addEventListener('message', (message) => {
        if (frozen.value) return;
        const batch = JSON.parse(message.data as string) as LiveBatch;
        setSkipped((sum) => sum + batch.skipped);
        const fresh = batch.events.map((event) => ({ ...event, key: (nextKey += 1) })).toReversed();
        setRows((old) => [...fresh, ...old].slice(0, MAX));
      });
    };
    const onVisible = () => {
      source?.close();
      if (!document.hidden) open();
    };
    open();
    document.addEventListener('visibilitychange', onVisible);
    return () => {
      document.removeEventListener('visibilitychange', onVisible);
      source?.close();
    };
  }, [queue, type]);
  return { rows, status, skipped, clear: () => setRows([]) };
}

export function LivePage() {
  const queue = query.value.get('queue');
  const type = query.value.get('type');
  const { rows, status, skipped, clear } = useEvents(queue, type);
  const shown = rows.filter((row) => type === null || row.type === type);
  const choose = (change: Record<string, string>) => go(href('live', { queue, type, ...change }), true);
  return (
    <>
      <div class="heading">
        <h1>
          Live{' '}
          <span class={`badge ${status === 'live' ? 'good' : 'warn'}`}>
            {frozen.value ? 'frozen' : status}
          </span>
        </h1>
        <div class="row">
          <button type="button" onClick={() => (frozen.value = !frozen.value)}>
            {frozen.value ? 'Go on' : 'Freeze'}
          </button>
          <button type="button" onClick={clear}>
            Clear
          </button>
        </div>
      </div>
      <div class="filters">
        <label>
          <span>Queue</span>
          <select value={queue ?? ''} onChange={(event) => choose({ queue: event.currentTarget.value })}>
            <option value="">all</option>
            {me.value?.queues.map((name) => (
              <option key={name}>{name}</option>
            ))}
          </select>
        </label>
        <label>
          <span>Event</span>
          <select value={type ?? ''} onChange={(event) => choose({ type: event.currentTarget.value })}>
            <option value="">all</option>
            {TYPES.map((name) => (
              <option key={name}>{name}</option>
            ))}
          </select>
        </label>
      </div>
      <Card>
        {shown.length === 0 ? (
          <Empty title={status === 'live' ? 'Nothing has happened yet.' : 'Connecting to the events …'}>
            Events of jobs appear here while this page is open, the newest first.
          </Empty>
        ) : (
          <Table label="Events" head={['Time', 'Event', 'Queue', 'Job', 'Id', '']}>
            {shown.map((row) => (
              <tr key={row.key}>
                <td class="num">{moment(row.at, false)}</td>
                <td>
                  <span class={`state ${row.type}`}>{row.type}</span>
                </td>
                <td class="text">
                  <a href={queuePath(row.queue)}>{row.queue}</a>
                </td>
                <td class="text">{row.name}</td>
                <td class="id">
                  {row.jobId !== undefined && <a href={jobPath(row.queue, row.jobId)}>{row.jobId}</a>}
                </td>
                <td class="error">{row.note}</td>
              </tr>
            ))}
          </Table>
        )}
        {skipped > 0 && (
          <p class="faint">{count(skipped)} further events are not shown, because there were too many.</p>
        )}
      </Card>
    </>
  );
}
