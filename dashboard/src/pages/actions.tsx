import { targetText } from '../../../lib/subpaths/dashboard/filter-text.js';
import type { ActionsView } from '../../../lib/subpaths/dashboard/views.js';
import { usePoll } from '../api.js';
import { BulkActs } from '../bulk-acts.js';
import { go, href, me, query, queuePath } from '../state.js';
import { Card, ChoiceFilter, Empty, Table, TextFilter, Time, Waiting } from '../widgets.js';

/** Actions of people: actor, action, target and result. */
export function ActionsPage() {
  const [queue, actor, cursor] = ['queue', 'actor', 'cursor'].map((name) => query.value.get(name));
  const { data, error } = usePoll<ActionsView>(href('actions', { queue, actor, cursor }), 10_000);
  const show = (change: Record<string, string>) => go(href('actions', { queue, actor, ...change }));
  return (
    <>
      <h1>Actions</h1>
      <p class="faint">
        What people did on this dashboard, with the command godwit, and through handles with an actor. About
        the last 10,000 are kept.
      </p>
      <div class="filters">
        <ChoiceFilter
          label="Queue"
          value={queue}
          values={me.value?.queues ?? []}
          onChange={(chosen) => show({ queue: chosen })}
        />
        <TextFilter label="Actor" value={actor} onChange={(text) => show({ actor: text })} />
      </div>
      <BulkActs queue={queue ?? undefined} hasAll />
      {data ? (
        <ActionList data={data} isFirst={!cursor} onNext={(next) => show({ cursor: next })} />
      ) : (
        <Waiting error={error} />
      )}
    </>
  );
}

function ActionList({
  data,
  isFirst,
  onNext,
}: {
  data: ActionsView;
  isFirst: boolean;
  onNext: (cursor: string) => void;
}) {
  return (
    <Card>
      {data.actions.length === 0 ? (
        <Empty title="No actions.">What people change is listed here, with who did it.</Empty>
      ) : (
        <Table label="Actions" head={['When', 'Actor', 'Action', 'Queue', 'Which', 'Count', 'Result']}>
          {data.actions.map((one, at) => (
            <tr key={at}>
              <td>
                <Time at={one.at} />
              </td>
              <td class="text">{one.actor}</td>
              <td>{one.action}</td>
              <td class="text">
                {one.queue === null ? '–' : <a href={queuePath(one.queue)}>{one.queue}</a>}
              </td>
              <td class="text">
                <Target text={one.target} />
              </td>
              <td class="num">{one.count ?? '–'}</td>
              <td>
                <span class={one.result === 'ok' || one.result === 'started' ? '' : 'badge bad'}>
                  {one.result}
                </span>
              </td>
            </tr>
          ))}
        </Table>
      )}
      <div class="row pages">
        {!isFirst && (
          <button type="button" onClick={() => onNext('')}>
            Newest
          </button>
        )}
        {data.cursor !== null && (
          <button type="button" onClick={() => onNext(data.cursor!)}>
            Older
          </button>
        )}
      </div>
    </Card>
  );
}

function Target({ text }: { text: string }) {
  if (text === '') return <>the queue</>;
  const shown = targetText(text);
  return shown === text ? <code>{text}</code> : <>{shown}</>;
}
