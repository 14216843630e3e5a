import { targetText } from '../../lib/subpaths/dashboard/filter-text.js';
import type { BulkActView } from '../../lib/subpaths/dashboard/views.js';
import { post, usePoll } from './api.js';
import { attempt, VERBS } from './dialogs.js';
import { count, perTime } from './format.js';
import { now, queuePath } from './state.js';
import { Card, Table, Time } from './widgets.js';

const POLL_MS = 2_000;
/** Acts that ended longer ago are shown only on the page Actions. */
const RECENT_MS = 600_000;

/** An act that was interrupted can still be continued or stopped. */
function hasEnded({ state }: BulkActView): boolean {
  return state !== 'running' && state !== 'interrupted';
}

/** Acts on many jobs that run in the background: how far they are, with a button to stop or continue each. */
export function BulkActs({ queue, hasAll = false }: { queue?: string | undefined; hasAll?: boolean }) {
  const { data = [] } = usePoll<BulkActView[]>('bulk', POLL_MS);
  const acts = data.filter(
    (one) =>
      (queue === undefined || one.queue === queue) &&
      (hasAll || !hasEnded(one) || now.value - one.updatedAt < RECENT_MS),
  );
  if (acts.length === 0) return null;
  return (
    <Card title="Acts on many jobs" id="bulk-acts">
      <Table label="Acts on many jobs" head={['Act', 'Queue', 'State', 'Progress', 'Started', '']}>
        {acts.map((one) => (
          <Row key={one.id} one={one} />
        ))}
      </Table>
    </Card>
  );
}

const TONES = { running: '', done: 'good', stopped: 'warn', interrupted: 'warn', failed: 'bad' } as const;

function Row({ one }: { one: BulkActView }) {
  const { id, queue, kind, state, done, unchanged, examined, total, rate } = one;
  const at = `${queuePath(queue)}/bulk/${encodeURIComponent(id)}`;
  // The process that works on it stops within a second.
  const isStopping = state === 'running' && one.stoppedBy !== null;
  const canContinue = state === 'interrupted' || state === 'stopped' || state === 'failed';
  return (
    <tr data-row>
      <th scope="row">
        {VERBS[kind]} {targetText(one.filter)}
      </th>
      <td class="text">
        <a href={queuePath(queue)}>{queue}</a>
      </td>
      <td>
        <span class={`badge ${TONES[state]}`}>{isStopping ? 'stopping' : state}</span>
        {one.stoppedBy !== null && one.stoppedBy !== '' && <div class="faint">by {one.stoppedBy}</div>}
        {one.error !== null && <div class="error">{one.error}</div>}
      </td>
      <td>
        <progress
          aria-label={`Progress of ${VERBS[kind]} in ${queue}`}
          max={Math.max(1, total)}
          value={state === 'done' ? Math.max(1, total) : Math.min(examined, total)}
        />{' '}
        {count(done)} done, {count(examined)} of {count(total)} examined
        {unchanged > 0 && `, ${count(unchanged)} not changed`}
        {rate && `, at most ${perTime(rate.max, rate.per)}`}
      </td>
      <td>
        <Time at={one.startedAt} />
        {one.startedBy !== null && <div class="faint">by {one.startedBy}</div>}
      </td>
      <td>
        <div class="row nowrap">
          {one.canControl && canContinue && (
            <button type="button" onClick={() => void attempt('Continued.', () => post(`${at}/resume`))}>
              Continue
            </button>
          )}
          {one.canControl && !hasEnded(one) && !isStopping && (
            <button type="button" onClick={() => void attempt('Stopping.', () => post(`${at}/stop`))}>
              Stop
            </button>
          )}
        </div>
      </td>
    </tr>
  );
}
