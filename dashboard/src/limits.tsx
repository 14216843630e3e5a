import type { QueueDetail } from '../../lib/subpaths/dashboard/views.js';
import { post } from './api.js';
import { attempt } from './dialogs.js';
import { count, span } from './format.js';
import { queuePath } from './state.js';
import { Card, Table } from './widgets.js';

type Limit = QueueDetail['limits'][number];

/** Rates, concurrencies and groups of a queue, and how much of them is used. */
export function Limits({ queue }: { queue: QueueDetail }) {
  const canPause = queue.rights.includes('queue.pause');
  return (
    <Card
      title="Limits"
      id="limits"
      side={queue.hasMoreGroups && <span class="faint">the first 100 groups</span>}
    >
      <Table label="Limits" head={['Of', 'Starts', 'Left now', 'At the same time', 'Waiting', '']}>
        {queue.limits.map((one) => (
          <tr key={`${one.of} ${one.name ?? ''}`}>
            <th scope="row">
              {ofWhat(one)} {one.paused && <span class="badge warn">paused</span>}{' '}
              {one.isLive && <span class="badge">set at run time</span>}
              {one.breaker && one.breaker.state !== 'closed' && (
                <span class="badge warn">
                  breaker {one.breaker.state}
                  {one.nextInMs > 0 && ` for ${span(one.nextInMs)}`}
                </span>
              )}{' '}
              {one.heldForMs > 0 && <span class="badge warn">held for {span(one.heldForMs)}</span>}
            </th>
            <td>{rateOf(one)}</td>
            <td class="num">{leftOf(one)}</td>
            <td class="num">
              {one.concurrency === null ? '–' : `${count(one.running)} of ${count(one.concurrency)}`}
            </td>
            <td class="num">
              {one.of === 'queue' || one.of === 'groups' || one.of === 'shared'
                ? '–'
                : `${count(one.waiting)}${one.maxSize === null ? '' : ` of ${count(one.maxSize)}`}`}
            </td>
            <td>
              {one.of === 'group' && canPause && (
                <button type="button" onClick={() => void pause(queue.name, one)}>
                  {one.paused ? 'Resume' : 'Pause'}
                </button>
              )}
            </td>
          </tr>
        ))}
      </Table>
    </Card>
  );
}

function ofWhat({ of, name }: Limit): string {
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
      return `name ${name ?? ''}`;
  }
}

function rateOf({ rate }: Limit): string {
  return rate === null ? '–' : `${count(rate.max)} in ${span(rate.perMs)}`;
}

function leftOf({ left, nextInMs }: Limit): string {
  if (left === null) return '–';
  return nextInMs > 0 ? `none for ${span(nextInMs)}` : count(left);
}

async function pause(queue: string, { name, paused }: Limit): Promise<void> {
  const at = `${queuePath(queue)}/groups/${encodeURIComponent(name ?? '')}/${paused ? 'resume' : 'pause'}`;
  await attempt(`Group ${name ?? ''} is ${paused ? 'resumed' : 'paused'}.`, () => post(at));
}
