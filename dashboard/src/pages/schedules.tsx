import { useState } from 'preact/hooks';
import { cronInWords } from '../../../lib/schedule/words.js';
import type {
  ScheduleHistory,
  ScheduleResults,
  SchedulesView,
  ScheduleView,
} from '../../../lib/subpaths/dashboard/views.js';
import { del, post, usePoll } from '../api.js';
import { ask, attempt } from '../dialogs.js';
import { EditSchedule } from '../edit-schedule.js';
import { count, micros, plural, span } from '../format.js';
import { Json } from '../json.js';
import { NextTimes } from '../next-times.js';
import { jobPath, queuePath, schedulePath } from '../state.js';
import { Card, Empty, State, Table, Time, UnreadableQueues, Waiting } from '../widgets.js';

export function SchedulesPage() {
  const { data, error } = usePoll<SchedulesView>('schedules', 10_000);
  const { data: results } = usePoll<ScheduleResults>('schedules/results', 30_000);
  const [edited, setEdited] = useState<ScheduleView | null>(null);
  if (!data) return <Waiting error={error} />;
  const { schedules, notShown } = data;
  const more = Object.entries(notShown).map(([queue, number]) => `${count(number)} of ${queue}`);
  return (
    <>
      <h1>Schedules</h1>
      <UnreadableQueues queues={data.unreadable} />
      {more.length > 0 && <p class="faint">Not shown: {more.join(', ')}. See more with godwit schedules.</p>}
      {edited && (
        <EditSchedule key={`${edited.queue}/${edited.id}`} one={edited} onEnd={() => setEdited(null)} />
      )}
      <Card>
        {schedules.length === 0 ? (
          <Empty title="There is no schedule.">
            Declare one in code with @Schedule(), or at run time with queue.schedules.upsert().
          </Empty>
        ) : (
          <Table label="Schedules" head={['Schedule', 'When', 'Next', 'Last', 'Jobs', '']}>
            {schedules.map((one) => (
              <Row
                key={`${one.queue}/${one.id}`}
                one={one}
                results={results?.[one.queue]?.[one.id]}
                onEdit={() => setEdited(one)}
              />
            ))}
          </Table>
        )}
      </Card>
    </>
  );
}

type Results = ScheduleResults[string][string];

interface RowProps {
  one: ScheduleView;
  results: Results | undefined;
  onEdit: () => void;
}

function Row({ one, results, onEdit }: RowProps) {
  const { queue, id, rights, paused } = one;
  const at = schedulePath(queue, id);
  return (
    <tr data-row>
      <th scope="row">
        {id} {paused && <span class="badge warn">paused</span>}
        {one.ended && <span class="badge">ended</span>}
        <div class="faint">
          <a href={queuePath(queue)}>{queue}</a> · {one.jobName || 'unreadable'} ·{' '}
          {one.owner === null ? 'made at run time' : `declared in code (${one.owner})`}
        </div>
        {one.data && one.data.json !== 'null' && (
          <details>
            <summary>Data</summary>
            <Json value={one.data} />
          </details>
        )}
      </th>
      <td>{ruleInWords(one.rule)}</td>
      <td>
        {one.next.length === 0 ? (
          <span class="faint">none</span>
        ) : (
          <details>
            <summary>
              <Time at={one.next[0]!} />
            </summary>
            <NextTimes times={one.next} zone={one.rule?.['tz']} />
          </details>
        )}
      </td>
      <td>
        {one.lastJobId === null ? (
          <span class="faint">never</span>
        ) : (
          <a href={jobPath(queue, one.lastJobId)}>
            <Time at={one.lastAt} />
          </a>
        )}
        {results && results.length > 0 && <LastResults states={results} />}
        <History queue={queue} at={at} />
      </td>
      <td class="num">{count(one.fired)}</td>
      <td>
        <div class="row nowrap">
          {rights.includes('schedule.run') && (
            <button type="button" onClick={() => void attempt('Its job is added.', () => post(`${at}/run`))}>
              Run now
            </button>
          )}
          {rights.includes('schedule.pause') && !one.ended && (
            <button
              type="button"
              onClick={() =>
                void attempt(paused ? `${id} is resumed.` : `${id} is paused.`, () =>
                  post(`${at}/${paused ? 'resume' : 'pause'}`),
                )
              }
            >
              {paused ? 'Resume' : 'Pause'}
            </button>
          )}
          {rights.includes('schedule.edit') && one.owner === null && one.rule && (
            <button type="button" aria-label={`Edit ${id}`} onClick={onEdit}>
              Edit
            </button>
          )}
          {rights.includes('schedule.remove') && (
            <button type="button" class="danger" onClick={() => void remove(one, at)}>
              Remove
            </button>
          )}
        </div>
      </td>
    </tr>
  );
}

async function remove({ id, owner }: ScheduleView, at: string): Promise<void> {
  const sure = await ask({
    title: `Remove schedule ${id}?`,
    text:
      owner === null
        ? 'It adds no more jobs. Jobs that it added stay.'
        : `It is declared in the code of ${owner}, which makes it again at the next start. Pause it instead to keep it off.`,
    button: 'Remove it',
    isDanger: true,
  });
  if (sure !== null) await attempt(`${id} is removed.`, () => del(at));
}

/** A bar for each of the last occurrences, the newest on the right. Those of dead jobs are tall. */
function LastResults({ states }: { states: Results }) {
  const numbers = new Map<string, number>();
  for (const state of states) {
    const word = state === null ? 'ended and not kept' : state === 'active' ? 'running' : state;
    numbers.set(word, (numbers.get(word) ?? 0) + 1);
  }
  const words = Array.from(numbers, ([word, number]) => `${count(number)} ${word}`).join(', ');
  const label = `Last ${states.length === 1 ? 'job' : plural(states.length, 'job')}: ${words}`;
  return (
    <span class="results" role="img" aria-label={label} title={label}>
      {states.map((state, at) => (
        <i key={at} class={state ?? 'gone'} />
      ))}
    </span>
  );
}

/** Loaded when it is opened, because it searches the jobs of each state. */
function History({ queue, at }: { queue: string; at: string }) {
  const [isOpen, setOpen] = useState(false);
  const { data, error } = usePoll<ScheduleHistory>(isOpen ? `${at}/history` : null, 0);
  return (
    <details onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>History</summary>
      {!isOpen ? null : !data ? (
        <Waiting error={error} />
      ) : (
        <>
          <ul class="plain">
            {data.jobs.map((job) => (
              <li key={job.id}>
                <a href={jobPath(queue, job.id)}>
                  <Time at={job.createdAt} />
                </a>{' '}
                <State state={job.state} /> {job.durationUs !== null && micros(job.durationUs)}
              </li>
            ))}
          </ul>
          <p class="faint">
            {data.jobs.length === 0 && 'None of its jobs is kept. '}
            Completed jobs are kept with the option retention.
            {data.isPartial && ' Not all jobs of the queue were looked at.'}
          </p>
        </>
      )}
    </details>
  );
}

/** `every 5 min`, `0 7 * * MON-FRI in Europe/Berlin`. */
function ruleInWords(rule: ScheduleView['rule']): string {
  if (rule === null) return 'written by a newer version';
  const { cron, every, tz, overlap, missed, limit, jitter, afterEnd } = rule;
  const when =
    typeof cron === 'string'
      ? `${[cronInWords(cron), cron].filter(Boolean).join(' · ')} (${typeof tz === 'string' ? tz : 'UTC'})`
      : `every ${time(every)}${afterEnd === true ? ' after the last run ended' : ''}`;
  const more = [
    overlap !== undefined && overlap !== 'allow' && `overlap: ${word(overlap)}`,
    missed !== undefined && missed !== 'once' && `missed: ${word(missed)}`,
    limit !== undefined && `at most ${word(limit)} jobs`,
    jitter !== undefined && jitter !== 0 && `up to ${time(jitter)} later`,
  ].filter(Boolean);
  return [when, ...more].join(', ');
}

function word(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** A duration as it was given: ms, or a text such as `5m`. */
function time(value: unknown): string {
  if (typeof value === 'number') return span(value);
  const [, number, unit] = /^(\d+)(s|m|h|d)$/.exec(word(value)) ?? [];
  return number === undefined ? word(value) : `${number} ${unit === 'm' ? 'min' : unit}`;
}
