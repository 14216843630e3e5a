import { FINGERPRINT_LENGTH } from '../../../lib/job/fingerprint.js';
import type { DeadGroup, DeadView } from '../../../lib/subpaths/dashboard/views.js';
import { pauseAfter, usePoll } from '../api.js';
import { BulkActs } from '../bulk-acts.js';
import { bulk } from '../dialogs.js';
import { count, plural } from '../format.js';
import { href, jobPath, query, queuePath } from '../state.js';
import { Card, Empty, Table, Time, UnreadableQueues, Waiting } from '../widgets.js';

function examinedIn(view: DeadView | undefined): number {
  return Object.values(view?.examined ?? {}).reduce((sum, { examined }) => sum + examined, 0);
}

export function DeadPage() {
  const { data, error } = usePoll<DeadView>('dead', (latest) => pauseAfter(examinedIn(latest), 10_000));
  const only = query.value.get('queue');
  if (!data) return <Waiting error={error} />;
  const groups = data.groups.filter(({ queue }) => only === null || queue === only);
  const partial = Object.entries(data.examined).filter(
    ([queue, of]) => of.examined < of.total && (only === null || queue === only),
  );
  return (
    <>
      <h1>Dead jobs{only !== null && ` of ${only}`}</h1>
      <p class="faint">
        Jobs that do not run again unless you retry them, by reason, name and error. Numbers and ids in errors
        are left out as #.
      </p>
      {only !== null && (
        <p>
          <a class="button" href="dead">
            All queues
          </a>
        </p>
      )}
      <UnreadableQueues queues={data.unreadable} only={only} />
      <BulkActs queue={only ?? undefined} />
      <Card>
        {groups.length === 0 ? (
          <Empty title="No dead jobs.">
            Jobs that failed for good are grouped here by reason, name and error.
          </Empty>
        ) : (
          <Table
            label="Dead jobs by reason, name and error"
            head={['Jobs', 'Queue', 'Name', 'Reason and error', 'Last', '']}
          >
            {groups.map((group) => (
              <Group
                key={JSON.stringify([group.queue, group.reason, group.name, group.error])}
                group={group}
                rights={data.rights[group.queue] ?? []}
                isPart={partial.some(([queue]) => queue === group.queue)}
              />
            ))}
          </Table>
        )}
        {partial.length > 0 && (
          <p class="faint">
            {partial
              .map(
                ([queue, of]) =>
                  `${queue}: the last ${count(of.examined)} of ${plural(of.total, 'dead job')} are counted`,
              )
              .join('; ')}
            .
          </p>
        )}
      </Card>
    </>
  );
}

function Group({
  group,
  rights,
  isPart,
}: {
  group: DeadGroup;
  rights: readonly string[];
  /** Whether there may be more such jobs than were counted. */
  isPart: boolean;
}) {
  const { queue, reason, name, error } = group;
  const filter = { state: 'dead', ...(name && { name }), ...(reason && { reason }), error };
  const target = {
    queue,
    filter,
    about: `${isPart ? 'all' : count(group.count)} dead jobs ${name || ''} with ${error}${isPart ? ', also those that are not counted here,' : ''}`,
  };
  return (
    <tr data-row>
      <td class="num">
        <strong>
          {count(group.count)}
          {isPart && '+'}
        </strong>
      </td>
      <td class="text">
        <a href={queuePath(queue)}>{queue}</a>
      </td>
      <th scope="row">
        <a href={href(`${queuePath(queue)}/jobs`, filter)}>{name || <i>unreadable</i>}</a>
      </th>
      <td class="error">
        <span class="badge bad">{reason || 'unknown'}</span> {error}
        {error.length === FINGERPRINT_LENGTH && '…'}
      </td>
      <td>
        <a href={jobPath(queue, group.sample)}>
          <Time at={group.lastAt} />
        </a>
      </td>
      <td>
        <div class="row nowrap">
          {rights.includes('bulk') && rights.includes('job.retry') && (
            <button type="button" onClick={() => void bulk('retry', target)}>
              Retry
            </button>
          )}
          {rights.includes('bulk') && rights.includes('job.remove') && (
            <button type="button" class="danger" onClick={() => void bulk('remove', target)}>
              Remove
            </button>
          )}
        </div>
      </td>
    </tr>
  );
}
