import { useState } from 'preact/hooks';
import type { QueueDetail } from '../../lib/subpaths/dashboard/views.js';
import { stopsJobs } from '../../lib/producer/limit-info.js';
import { post } from './api.js';
import { ask, attempt } from './dialogs.js';
import { count, perTime, span } from './format.js';
import { LimitForm, type Limited } from './limit-form.js';
import { go, groupPath, href, jobPath, queuePath } from './state.js';
import { Card, Table } from './widgets.js';

type Limit = QueueDetail['limits'][number];

/** Rates, concurrencies and groups of a queue, and how much of them is used. */
export function Limits({ queue, group }: { queue: QueueDetail; group: string }) {
  const canPause = queue.rights.includes('queue.pause');
  const canEdit = queue.rights.includes('limit.edit');
  const [edited, setEdited] = useState<Limited | null>(null);
  const hasOwn = queue.limits.some(({ of }) => of === 'queue');
  const limited = new Set(queue.limits.map(({ of, name }) => of === 'name' && name));
  if (edited)
    return (
      <LimitForm
        queue={queue.name}
        title={ofWhat(edited)}
        limit={edited}
        names={Object.keys(queue.byName).filter((name) => name !== '' && !limited.has(name))}
        // It also resumes a paused group.
        canClear={edited.paused !== true || canPause}
        onEnd={() => setEdited(null)}
      />
    );
  const start = canEdit && (
    <span class="row">
      {!hasOwn && (
        <button type="button" class="small" onClick={() => setEdited({ of: 'queue', name: null })}>
          Limit the queue
        </button>
      )}
      <button type="button" class="small" onClick={() => setEdited({ of: 'name', name: null })}>
        Limit a name
      </button>
    </span>
  );
  if (queue.limits.length === 0) return start ? <p>{start}</p> : null;
  return (
    <Card
      title="Limits"
      id="limits"
      side={
        <span class="row">
          {(group !== '' || queue.limits.some(({ of }) => of === 'group' || of === 'groups')) && (
            <FindGroup key={group} queue={queue} group={group} />
          )}
          {start}
        </span>
      }
    >
      <Table label="Limits" head={['Of', 'Starts', 'Left now', 'At the same time', 'Waiting', '']}>
        {queue.limits.map((one) => (
          <tr key={`${one.of} ${one.name ?? ''}`}>
            <th scope="row">
              {ofWhat(one)} {one.paused && <span class="badge warn">paused</span>}{' '}
              {one.isStopped && <span class="badge bad">stopped</span>}{' '}
              {one.isLive && <span class="badge">set at run time</span>}
              {one.breaker && one.breaker.state !== 'closed' && (
                <span class="badge warn">
                  breaker {one.breaker.state}
                  {one.nextInMs > 0 && ` for ${span(one.nextInMs)}`}
                </span>
              )}{' '}
              {one.heldForMs > 0 && <span class="badge warn">held for {span(one.heldForMs)}</span>}
              {one.of === 'groups' && one.fairness === 'in-flight' && (
                <div class="faint">in-flight: the group with the fewest running jobs starts the next one</div>
              )}
              {one.breaker && (
                <div class="faint">
                  breaker: opens for {span(one.breaker.openForMs)} after {count(one.breaker.failures)} failed
                  runs in {span(one.breaker.windowMs)}
                </div>
              )}
            </th>
            <td>
              {rateOf(one)}
              {one.retryBudget && (
                <div class="faint">
                  {count(one.retryBudget.max)} retries in {span(one.retryBudget.perMs)}
                  {one.retryBudget.percent !== null &&
                    `, and ${one.retryBudget.percent} % of first attempts`}{' '}
                  {one.retryBudget.delayMs > 0 && (
                    <span class="badge warn">retries wait {span(one.retryBudget.delayMs)}</span>
                  )}
                </div>
              )}
            </td>
            <td class="num">{leftOf(one)}</td>
            <td class="num">
              <Running queue={queue.name} one={one} />
            </td>
            <td class="num">
              {one.of === 'queue' || one.of === 'groups' || one.of === 'shared' ? (
                '–'
              ) : (
                <Waiting queue={queue.name} one={one} />
              )}
            </td>
            <td>
              <div class="row nowrap">
                {stopsJobs(one) && mayRelease(queue, one) && (
                  <button type="button" onClick={() => void release(queue.name, one)}>
                    Release
                  </button>
                )}
                {one.of === 'group' && canPause && (
                  <button type="button" onClick={() => void pause(queue.name, one)}>
                    {one.paused ? 'Resume' : 'Pause'}
                  </button>
                )}
                {canEdit && one.of !== 'shared' && one.of !== 'groups' && (
                  <button
                    type="button"
                    aria-label={`Edit the limit of ${ofWhat(one)}`}
                    onClick={() => setEdited(one)}
                  >
                    Edit
                  </button>
                )}
              </div>
            </td>
          </tr>
        ))}
      </Table>
    </Card>
  );
}

/** A field for the name of a group, because only the first groups are shown. The address has the name. */
function FindGroup({ queue, group }: { queue: QueueDetail; group: string }) {
  const [name, setName] = useState(group);
  const find = (event: Event) => {
    event.preventDefault();
    go(href(queuePath(queue.name), { group: name }), true);
  };
  return (
    <form class="row" onSubmit={find}>
      {queue.hasMoreGroups && group === '' && <span class="faint">not all groups are shown</span>}
      <input
        aria-label="Name of a group"
        placeholder="name of a group"
        value={name}
        onInput={(event) => setName(event.currentTarget.value)}
      />
      <button type="submit" class="small">
        Find
      </button>
      {group !== '' && (
        <button type="button" class="small" onClick={() => go(queuePath(queue.name), true)}>
          All groups
        </button>
      )}
    </form>
  );
}

/** How many jobs run; in strict order, the job that must end before the next one starts. */
function Running({ queue, one }: { queue: string; one: Limit }) {
  const { of, concurrency, running, holder, isStopped, fairness } = one;
  if (holder !== null)
    return (
      <>
        after <a href={jobPath(queue, holder)}>{holder}</a>
        {isStopped && ', which is dead'}
      </>
    );
  if (concurrency === null) return <>{of === 'group' && fairness === 'in-flight' ? count(running) : '–'}</>;
  return <>{of === 'groups' ? count(concurrency) : `${count(running)} of ${count(concurrency)}`}</>;
}

/** How many jobs wait, with a link to their list, where they can be removed. */
function Waiting({ queue, one: { of, name, waiting, maxSize } }: { queue: string; one: Limit }) {
  return (
    <>
      <a href={href(`${queuePath(queue)}/jobs`, { state: 'waiting', [of]: name })}>{count(waiting)}</a>
      {maxSize !== null && ` of ${count(maxSize)}`}
    </>
  );
}

/** The hold or breaker of a shared limit stops other queues too, so the server knows who may release it. */
function mayRelease({ rights, releasable }: QueueDetail, { of, name }: Limit): boolean {
  if (of === 'shared') return releasable.includes(name ?? '');
  return of !== 'groups' && rights.includes('queue.pause');
}

async function release(queue: string, one: Limit): Promise<void> {
  const { of, name } = one;
  const sure = await ask({
    title: `Let jobs of ${ofWhat(one)} start?`,
    text: `The hold ends, and the circuit breaker closes. Jobs ${of === 'shared' ? 'of all queues that use it ' : ''}start at once, within the limits.`,
    button: 'Release',
  });
  if (sure === null) return;
  const at =
    of === 'group' ? `${groupPath(queue, name ?? '')}/release` : `${queuePath(queue)}/limits/release`;
  await attempt('Jobs start again.', () => post(at, of === 'name' || of === 'shared' ? { [of]: name } : {}));
}

function ofWhat({ of, name }: Limited): string {
  switch (of) {
    case 'queue':
      return 'the queue';
    case 'groups':
      return 'each group';
    case 'group':
      return `group ${name ?? ''}`;
    case 'shared':
      return `shared limit ${name ?? ''}`;
    default:
      return name === null ? 'a name' : `name ${name}`;
  }
}

function rateOf({ rate }: Limit): string {
  return rate === null ? '–' : perTime(rate.max, rate.perMs);
}

function leftOf({ left, nextInMs }: Limit): string {
  if (left === null) return '–';
  return nextInMs > 0 ? `none for ${span(nextInMs)}` : count(left);
}

async function pause(queue: string, { name, paused }: Limit): Promise<void> {
  const at = `${groupPath(queue, name ?? '')}/${paused ? 'resume' : 'pause'}`;
  await attempt(`Group ${name ?? ''} is ${paused ? 'resumed' : 'paused'}.`, () => post(at));
}
