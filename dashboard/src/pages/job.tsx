import type { ComponentChildren } from 'preact';
import { useRef, useState } from 'preact/hooks';
import { parseExact, printExact } from '../../../lib/subpaths/dashboard/exact-json.js';
import { logByAttempt } from '../../../lib/job/job-log.js';
import type { JobDetail } from '../../../lib/subpaths/dashboard/views.js';
import { AddJob } from '../add-job.js';
import { del, get, post, usePoll } from '../api.js';
import { ask, attempt } from '../dialogs.js';
import { micros, moment, plural, span } from '../format.js';
import { Json } from '../json.js';
import { go, href, jobPath, now, queuePath, say } from '../state.js';
import { Card, CopyButton, Empty, FormEnd, State, Time, useSubject, Waiting } from '../widgets.js';

export function JobPage({ queue, id }: { queue: string; id: string }) {
  const at = jobPath(queue, id);
  const [isEditing, setEditing] = useState(false);
  const [copied, setCopied] = useState<JobDetail | null>(null);
  const [isFull, setFull] = useState(false);
  const { last, error } = usePoll<JobDetail>(href(at, { full: isFull ? '1' : null }), 3_000, isEditing);
  const edited = useRef<JobDetail | undefined>(undefined);
  if (last) edited.current = last;
  // A job that is gone stays on the page while it has edited text that is not saved.
  const job = last ?? (isEditing ? edited.current : undefined);
  useSubject(`${job?.name ?? ''} ${id} · ${queue}`.trim());
  const crumbs = (
    <p class="crumbs">
      <a href="queues">Queues</a> / <a href={queuePath(queue)}>{queue}</a> /{' '}
      <a href={href(`${queuePath(queue)}/jobs`, { state: job?.state ?? 'waiting' })}>Jobs</a> /
    </p>
  );
  if (!job)
    return (
      <>
        {crumbs}
        {error?.code === 'GODWIT_JOB_NOT_FOUND' ? (
          <Empty title="There is no such job, or no longer.">
            Queue {queue} has no job {id}. Completed jobs are kept only with the option retention.
          </Empty>
        ) : (
          <Waiting error={error} />
        )}
      </>
    );
  return (
    <>
      {crumbs}
      <div class="heading">
        <h1 class="id">
          {job.name || 'unreadable job'} <State state={job.state} />
        </h1>
        <div class="row">
          {last && <Acts job={job} onEdit={() => setEditing(true)} onCopy={() => setCopied(job)} />}
        </div>
      </div>
      <p class="id">
        {job.id} <CopyButton text={job.id} label="Copy id" />
      </p>
      {job.links.length > 0 && (
        <p class="row">
          {job.links.map(({ label, url }) => (
            <a key={label} class="button small" href={url} target="_blank" rel="noopener noreferrer">
              {label}
            </a>
          ))}
        </p>
      )}
      {job.waitsFor.length > 0 && <p class="notice warn">It waits because {job.waitsFor.join('; and ')}.</p>}
      {job.isLost && (
        <p class="notice warn">
          Its worker has gone silent. Another worker takes the job back after the lease, when it next looks
          for jobs.
        </p>
      )}
      {job.state === 'active' && job.cancelReason !== null && (
        <p class="notice warn">
          It was asked to stop: {job.cancelReason}. It runs until its handler returns.
        </p>
      )}
      {!last && error && (
        <p class="notice bad" role="alert">
          {error.status === 404
            ? 'This job is gone: it was removed, or it has ended and is not kept. Your text cannot be saved. Copy it if you need it.'
            : error.message}
        </p>
      )}
      {copied && <AddJob queue={queue} name={copied.name} like={copied} onEnd={() => setCopied(null)} />}
      {isEditing && <Editor job={job} onEnd={() => setEditing(false)} />}
      <div class="columns">
        <div>
          {job.failure && <Failure job={job} />}
          <Card title="Data" id="data">
            {job.data ? (
              <Json value={job.data} onAll={() => setFull(true)} />
            ) : (
              <Empty title={job.codec ? `The data is encoded (${job.codec}).` : 'No data is shown.'}>
                {job.rights.includes('read-data')
                  ? 'The job was added without data, or cannot be decoded.'
                  : 'You may not see the data of jobs.'}
              </Empty>
            )}
          </Card>
          {job.headers && (
            <Card title="Headers" id="headers">
              <Json value={job.headers} onAll={() => setFull(true)} />
            </Card>
          )}
          {(job.result || job.resultFault) && (
            <Card title="Result" id="result">
              {job.result && <Json value={job.result} onAll={() => setFull(true)} />}
              {job.resultFault && <p class="notice warn">{job.resultFault}</p>}
            </Card>
          )}
          {job.progress && (
            <Card title="Progress" id="progress">
              <Progress job={job} />
            </Card>
          )}
          {job.logs.length > 0 && (
            <Card title="Log" id="log" side={<CopyButton text={logText(job)} />}>
              <Log job={job} />
            </Card>
          )}
        </div>
        <div>
          <Card title="Timeline" id="timeline">
            <Timeline job={job} />
          </Card>
          <Card title="Facts" id="facts">
            <Facts job={job} />
          </Card>
        </div>
      </div>
    </>
  );
}

/** Whether it waits for the end of another job, so it has no time. */
const isParked = ({ state, dueAt }: JobDetail) => state === 'delayed' && dueAt === null;

function Acts({ job, onEdit, onCopy }: { job: JobDetail; onEdit: () => void; onCopy: () => void }) {
  const { queue, id, state, rights } = job;
  const at = jobPath(queue, id);
  const isOpen = state === 'waiting' || state === 'delayed' || state === 'active';
  const hasData = rights.includes('read-data') && job.data !== null && !job.data.isCut;
  const canRetry = rights.includes('job.retry');
  const canEdit = rights.includes('job.edit') && hasData;
  return (
    <>
      {state === 'dead' && canRetry && (
        <button
          type="button"
          class="primary"
          onClick={() => void attempt('It waits again.', () => post(`${at}/retry`))}
        >
          Retry
        </button>
      )}
      {canEdit && ((state === 'dead' && canRetry) || state === 'waiting' || state === 'delayed') && (
        <button type="button" data-edit onClick={onEdit}>
          {state === 'dead' ? 'Edit and retry' : 'Edit'}
        </button>
      )}
      {hasData && rights.includes('job.add') && (
        <button type="button" onClick={onCopy}>
          Duplicate
        </button>
      )}
      {(state === 'waiting' || state === 'delayed') && rights.includes('job.edit') && !isParked(job) && (
        <button type="button" onClick={() => void reschedule(job)}>
          Reschedule
        </button>
      )}
      {isOpen && state !== 'active' && rights.includes('job.edit') && (
        <button type="button" onClick={() => void prioritize(job)}>
          Priority
        </button>
      )}
      {(state === 'completed' || state === 'cancelled') && canRetry && (
        <button type="button" onClick={() => void runAgain(job)}>
          Run again
        </button>
      )}
      {state === 'delayed' && !isParked(job) && rights.includes('job.promote') && (
        <button
          type="button"
          class="primary"
          onClick={() => void attempt('It runs as soon as a slot is free.', () => post(`${at}/promote`))}
        >
          Run now
        </button>
      )}
      {isOpen && rights.includes('job.cancel') && (
        <button type="button" class="danger" onClick={() => void cancel(job)}>
          Cancel
        </button>
      )}
      {state !== 'active' && rights.includes('job.remove') && (
        <button type="button" class="danger" onClick={() => void remove(job)}>
          Remove
        </button>
      )}
    </>
  );
}

async function cancel({ queue, id, state }: JobDetail): Promise<void> {
  const reason = await ask({
    title: 'Cancel this job?',
    text:
      state === 'active'
        ? 'Its signal aborts within some seconds. If its handler returns all the same, the job is completed.'
        : 'It ends as cancelled and is not retried.',
    button: 'Cancel the job',
    isDanger: true,
    field: { label: 'Reason', value: 'cancelled on the dashboard' },
  });
  if (reason === null) return;
  await attempt(state === 'active' ? 'Its signal aborts soon.' : 'It is cancelled.', () =>
    post(`${jobPath(queue, id)}/cancel`, reason === '' ? {} : { reason }),
  );
}

async function reschedule({ queue, id }: JobDetail): Promise<void> {
  const delay = await ask({
    title: 'Run this job later?',
    text: 'It runs after this time from now, such as 10m, 2h or 1d.',
    button: 'Set the time',
    field: { label: 'Time from now', value: '1h' },
  });
  if (delay !== null)
    await attempt('It has the new time.', () => post(`${jobPath(queue, id)}/move`, { delay }));
}

async function prioritize({ queue, id, priority }: JobDetail): Promise<void> {
  const text = await ask({
    title: 'Which priority?',
    text: '1 is first, 0 is none. A waiting job goes to the end of its new priority.',
    button: 'Set the priority',
    field: { label: 'Priority', value: String(priority) },
  });
  if (text !== null)
    await attempt('It has the new priority.', () =>
      post(`${jobPath(queue, id)}/move`, { priority: Number(text) }),
    );
}

async function runAgain({ queue, id, state }: JobDetail): Promise<void> {
  const sure = await ask({
    title: 'Run this job again?',
    text: `It is ${state} and is queued once more, with the same id and data. Its result, log and attempts are deleted.`,
    button: 'Run it again',
  });
  if (sure !== null) await attempt('It waits again.', () => post(`${jobPath(queue, id)}/retry`));
}

async function remove({ queue, id, state }: JobDetail): Promise<void> {
  const sure = await ask({
    title: 'Remove this job?',
    text: 'It is deleted, with its data. This cannot be undone.',
    button: 'Remove the job',
    isDanger: true,
  });
  if (sure === null) return;
  if (await attempt('It is removed.', () => del(jobPath(queue, id))))
    go(href(`${queuePath(queue)}/jobs`, { state }));
}

function Editor({ job, onEnd }: { job: JobDetail; onEnd: () => void }) {
  const tree = job.data && parseExact(job.data.json);
  const [text, setText] = useState(tree ? printExact(tree, '  ') : '');
  const [data] = useState(job.data);
  const isGood = parseExact(text) !== null;
  const isDead = job.state === 'dead';
  const save = async (event: Event) => {
    event.preventDefault();
    const again = isDead
      ? 'It waits again, with the new data.'
      : 'It had died. It waits again, with the new data.';
    const isDone = await attempt(
      ({ retried }) => (retried ? again : 'It has the new data.'),
      () =>
        post<{ retried: boolean }>(`${jobPath(job.queue, job.id)}/data`, {
          data: text,
          version: data?.version ?? '',
        }),
    );
    if (isDone) onEnd();
  };
  return (
    <Card title={isDead ? 'Edit and retry' : 'Edit the data'} id="editor">
      <form onSubmit={(event) => void save(event)}>
        <label class="field">
          <span>Data as JSON. Hidden values keep their marks and come back unchanged.</span>
          <textarea
            class="code"
            spellcheck={false}
            rows={Math.min(24, text.split('\n').length + 1)}
            value={text}
            aria-invalid={!isGood}
            onInput={(event) => setText(event.currentTarget.value)}
          />
        </label>
        <FormEnd
          button={isDead ? 'Save and retry' : 'Save'}
          close="Keep as it is"
          isJson={isGood}
          onEnd={onEnd}
        />
      </form>
    </Card>
  );
}

function Failure({ job }: { job: JobDetail }) {
  const failure = job.failure!;
  const isOver = job.state === 'dead';
  return (
    <Card
      title={isOver ? 'Why it died' : 'Last error'}
      id="failure"
      side={failure.stack && <CopyButton text={failure.stack} label="Copy stack" />}
    >
      <p class={`notice ${isOver ? 'bad' : 'warn'}`}>
        {job.reason && <span class="badge bad">{job.reason}</span>} <strong>{failure.name}</strong>:{' '}
        {failure.message}
      </p>
      <p class="faint">
        Attempt {outOf(failure.attempt, job)}, <Time at={failure.at} />
      </p>
      {failure.stack && (
        <details open={isOver}>
          <summary>Stack</summary>
          <pre tabIndex={0}>{failure.stack}</pre>
        </details>
      )}
    </Card>
  );
}

function Progress({ job }: { job: JobDetail }) {
  const value = Number(job.progress!.json);
  const isShare = Number.isFinite(value) && value >= 0 && value <= 100;
  return isShare ? (
    <p>
      <progress max={100} value={value} aria-label="Progress" /> {value} %
    </p>
  ) : (
    <Json value={job.progress!} />
  );
}

/** The log lines of each attempt, with its outcome. Only the lines of the last attempt are open. */
function Log({ job }: { job: JobDetail }) {
  const attempts = logByAttempt(job.logs);
  return attempts.map(({ attempt: number, lines }, at) => {
    const failed = job.failures.find((one) => one.attempt === number);
    return (
      <details key={at} class="log" open={at === attempts.length - 1}>
        <summary>
          {attemptTitle(number)}
          {failed && (
            <>
              {' '}
              failed: <strong>{failed.name}</strong>: {failed.message}
            </>
          )}
          <span class="faint"> · {plural(lines.length, 'line')}</span>
        </summary>
        <pre tabIndex={0}>{lines.join('\n')}</pre>
      </details>
    );
  });
}

function attemptTitle(attempt: number | null): string {
  return attempt === null ? 'Attempt unknown' : `Attempt ${attempt}`;
}

function logText({ logs }: JobDetail): string {
  return logByAttempt(logs)
    .map(({ attempt, lines }) => [attemptTitle(attempt), ...lines].join('\n'))
    .join('\n\n');
}

interface Step {
  readonly at: number;
  readonly kind: string;
  readonly text: ComponentChildren;
  readonly isRunning?: boolean;
}

function Timeline({ job }: { job: JobDetail }) {
  const steps: Step[] = [];
  const add = (at: number | null, kind: string, text: ComponentChildren, isRunning = false) => {
    if (at !== null) steps.push({ at, kind, text, isRunning });
  };
  add(job.createdAt, 'waiting', 'Added');
  if (job.createdAt !== null && job.delay > 0)
    add(job.createdAt + job.delay, 'delayed', `First run, after a delay of ${span(job.delay)}`);
  for (const failed of job.failures)
    add(failed.at, 'dead', <FailedAttempt {...failed} worker={placeOf(job, failed.worker)} />);
  if (job.failures.length === 0 && job.failure && job.state !== 'dead')
    add(job.failure.at, 'dead', `Attempt ${job.failure.attempt} failed`);
  add(
    job.startedAt,
    'active',
    job.state === 'active'
      ? `Attempt ${job.attempt} started and runs in ${placeOf(job, job.worker ?? '')}`
      : `Attempt ${job.attempt} started`,
    job.state === 'active',
  );
  // The clock of the process that added it may differ a little from that of Redis.
  const isFirst = job.dueAt !== null && Math.abs(job.dueAt - job.createdAt! - job.delay) < 1_000;
  if (job.state === 'delayed' && !isFirst) add(job.dueAt, 'delayed', `Attempt ${job.attempt + 1} is due`);
  add(
    job.endedAt,
    job.state,
    `${job.state === 'completed' ? 'Completed' : job.state === 'dead' ? `Died in attempt ${job.attempt}` : 'Cancelled'}${job.durationUs === null ? '' : `, after a run of ${micros(job.durationUs)}`}`,
  );
  // It was added before all else, also if the clock of the process that added it is ahead.
  const [added, ...others] = steps;
  const ordered = steps.length === 0 ? [] : [added!, ...others.toSorted((a, b) => a.at - b.at)];
  return (
    <ol class="timeline">
      {ordered.map((step, index) => {
        const before = ordered[index - 1];
        return (
          <li key={index} class={step.kind}>
            <div>{step.text}</div>
            <div class="faint">
              {moment(step.at)}
              {before && ` · ${span(Math.max(0, step.at - before.at))} later`}
              {step.at > job.now && ' · to come'}
              {step.isRunning && ` · for ${span(Math.max(0, now.value - step.at))} so far`}
            </div>
          </li>
        );
      })}
    </ol>
  );
}

/** The process of a worker, if the process is alive, and the name of the worker. */
function placeOf({ processes }: JobDetail, worker: string): string {
  const place = processes[worker];
  return place === undefined ? worker : `${place} (${worker})`;
}

function FailedAttempt({ attempt, durationUs, worker, name, message, stack }: JobDetail['failures'][number]) {
  return (
    <>
      Attempt {attempt} failed after {micros(durationUs)} in {worker}: <strong>{name}</strong>: {message}
      {stack && (
        <details>
          <summary>Stack</summary>
          <pre tabIndex={0}>{stack}</pre>
        </details>
      )}
    </>
  );
}

/** `2 of 3`. The number of attempts of a queue whose defaults are not known here is left out. */
function outOf(attempt: number, { attempts }: JobDetail): string {
  return attempts === null ? String(attempt) : `${attempt} of ${attempts}`;
}

function Facts({ job }: { job: JobDetail }) {
  const facts: [string, ComponentChildren][] = [
    ['Attempt', outOf(job.attempt, job)],
    ['Priority', job.priority === 0 ? 'none' : job.priority],
    ['Lost workers', job.stalls],
    ['Worker', job.worker === null ? 'none' : placeOf(job, job.worker)],
  ];
  if (job.state === 'active' && job.startedAt !== null)
    facts.unshift(['Runs for', span(Math.max(0, now.value - job.startedAt))]);
  if (job.group !== null)
    facts.push([
      'Group',
      <a href={href(`${queuePath(job.queue)}/jobs`, { state: job.state, group: job.group })}>{job.group}</a>,
    ]);
  if (job.schedule !== null) facts.push(['Schedule', <a href="schedules">{job.schedule}</a>]);
  if (job.state === 'cancelled') facts.push(['Cancelled because', job.cancelReason]);
  const { digest, runnableAt, ...own } = job.options;
  if (typeof runnableAt === 'number') facts.push(['Delayed until', <Time at={runnableAt} />]);
  if (digest !== undefined)
    facts.push([
      'Unique key',
      <span title={`digest ${JSON.stringify(digest)}`}>
        {job.endedAt !== null ? 'had one' : isParked(job) ? 'held by another job' : 'held until the job ends'}
      </span>,
    ]);
  for (const [key, value] of Object.entries(own))
    if (key !== 'group' && key !== 'isUnique') facts.push([`Option ${key}`, JSON.stringify(value)]);
  const options = Object.keys(job.options).length > 0;
  return (
    <>
      <dl>
        {facts.map(([key, value]) => (
          <div key={key}>
            <dt>{key}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
      {!options && <p class="faint">It has no options of its own; those of the queue apply.</p>}
      <AsCode {...job} />
    </>
  );
}

/** The code that adds the same job again. */
function AsCode({ queue, id, name }: JobDetail) {
  const [code, setCode] = useState<string | null>(null);
  const load = async () => {
    try {
      const { data } = await get<JobDetail>(href(jobPath(queue, id), { full: '1' }));
      setCode(`await queue.add(${JSON.stringify(name)}, ${data?.json ?? 'undefined'});`);
    } catch (error) {
      say(error instanceof Error ? error.message : String(error), true);
    }
  };
  if (code === null)
    return (
      <button type="button" class="small" onClick={() => void load()}>
        Show as code
      </button>
    );
  return (
    <>
      <CopyButton text={code} label="Copy the code" />
      <pre tabIndex={0}>{code}</pre>
    </>
  );
}
