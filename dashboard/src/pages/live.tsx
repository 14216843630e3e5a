import { useEffect, useRef, useState } from 'preact/hooks';
import { EVENT_TYPES } from '../../../lib/contract/engine.js';
import type { LiveBatch, LiveEvent } from '../../../lib/subpaths/dashboard/live.js';
import { usePoll } from '../api.js';
import { count, moment } from '../format.js';
import { frozen, go, href, jobPath, me, query, queuePath, ROOT, troubles } from '../state.js';
import { Card, ChoiceFilter, Empty, Table, TextFilter } from '../widgets.js';

const MAX = 300;

interface Row extends LiveEvent {
  readonly key: number;
}
let nextKey = 0;

/**
 * Wait before the next try if the server refused a stream. After a lost connection the browser reconnects by
 * itself.
 */
const AGAIN_MS = 3_000;
/** The server sends its status every 15 s. A network that drops packets would otherwise look like a time without events. */
const SILENT_MS = 40_000;
/** The position in the events of hundreds of queues does not fit into an address. */
const MAX_PLACE = 4_000;

/**
 * Shows events as they arrive, while the page is visible and not frozen. After a pause it continues after the
 * last event.
 */
function useEvents(queue: string | null, type: string | null, name: string | null) {
  const [rows, setRows] = useState<readonly Row[]>([]);
  const [status, setStatus] = useState<'connecting' | 'live' | 'lost'>('connecting');
  const [skipped, setSkipped] = useState(0);
  const place = useRef('');
  const isFrozen = frozen.value;
  const clear = () => {
    setRows([]);
    setSkipped(0);
  };
  useEffect(
    () => () => {
      place.current = '';
      setSkipped(0);
    },
    [queue, type, name],
  );
  useEffect(() => {
    let source: EventSource | undefined;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const heard = () => {
      clearTimeout(timer);
      timer = setTimeout(open, SILENT_MS);
    };
    const close = () => {
      clearTimeout(timer);
      source?.close();
    };
    const open = () => {
      close();
      if (document.hidden || isFrozen) return;
      setStatus('connecting');
      connect();
    };
    const connect = () => {
      const since = place.current.length > MAX_PLACE ? '' : place.current;
      const one = new EventSource(new URL(href('api/v1/events', { queue, type, name, since }), ROOT));
      source = one;
      one.addEventListener('open', () => {
        heard();
        setStatus('live');
      });
      one.addEventListener('error', () => {
        heard();
        setStatus('lost');
        if (one.readyState !== EventSource.CLOSED) return;
        clearTimeout(timer);
        timer = setTimeout(open, AGAIN_MS);
      });
      one.addEventListener('status', (message) => {
        heard();
        if (message.data === 'over') {
          // The server checks the rights again with each new stream.
          one.close();
          connect();
          return;
        }
        setStatus(message.data === 'lost' ? 'lost' : 'live');
      });
      one.addEventListener('message', (message) => {
        heard();
        place.current = message.lastEventId;
        const batch = JSON.parse(message.data as string) as LiveBatch;
        setSkipped((sum) => sum + batch.skipped);
        const fresh = batch.events.map((event) => ({ ...event, key: (nextKey += 1) })).toReversed();
        setRows((old) => [...fresh, ...old].slice(0, MAX));
      });
    };
    open();
    document.addEventListener('visibilitychange', open);
    return () => {
      document.removeEventListener('visibilitychange', open);
      close();
    };
  }, [queue, type, name, isFrozen]);
  return { rows, status, skipped, clear };
}

const NOTHING = {
  connecting:
    'Connecting to the events … If this lasts, a proxy may be buffering the events. Switch off its buffering of text/event-stream.',
  live: 'Nothing has happened yet.',
  lost: 'No events arrive now.',
} as const;

export function LivePage() {
  const queue = query.value.get('queue');
  const type = query.value.get('type');
  const name = query.value.get('name');
  const { rows, status: stream, skipped, clear } = useEvents(queue, type, name);
  // It asks Redis. The stream alone shows only after some time that Redis is unreachable.
  usePoll('bulk', 5_000);
  const status = troubles.value.size > 0 ? 'lost' : stream;
  const shown = rows.filter(
    (row) =>
      (type === null || row.type === type) &&
      (queue === null || row.queue === queue) &&
      (name === null || row.name === name),
  );
  const choose = (change: Record<string, string>) => go(href('live', { queue, type, name, ...change }), true);
  return (
    <>
      <div class="heading">
        <h1>
          Live{' '}
          <span class={`badge ${status === 'live' && !frozen.value ? 'good' : 'warn'}`}>
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
        <ChoiceFilter
          label="Queue"
          value={queue}
          values={me.value?.queues ?? []}
          onChange={(chosen) => choose({ queue: chosen })}
        />
        <ChoiceFilter
          label="Event"
          value={type}
          values={EVENT_TYPES}
          onChange={(chosen) => choose({ type: chosen })}
        />
        <TextFilter label="Name" value={name} maxLength={255} onChange={(text) => choose({ name: text })} />
      </div>
      <Card>
        {shown.length === 0 ? (
          <Empty title={NOTHING[status]}>
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
