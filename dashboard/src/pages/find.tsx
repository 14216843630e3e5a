import { useLayoutEffect, useRef } from 'preact/hooks';
import type { FoundJob } from '../../../lib/subpaths/dashboard/views.js';
import { usePoll } from '../api.js';
import { go, href, jobPath, me, query, queuePath } from '../state.js';
import { Card, Empty, State, Table, Time } from '../widgets.js';

/** Queues by a part of their name, and a job by its id, in all queues. */
export function FindPage() {
  const text = query.value.get('q') ?? '';
  const input = useRef<HTMLInputElement>(null);
  const { data: jobs, error } = usePoll<FoundJob[]>(text === '' ? null : href('find', { id: text }), 0);
  useLayoutEffect(() => input.current?.focus(), []);
  const part = text.toLowerCase();
  const queues =
    part === '' ? [] : (me.value?.queues ?? []).filter((one) => one.toLowerCase().includes(part));
  const isNothing = queues.length === 0 && jobs?.length === 0;
  const search = (event: Event) => {
    event.preventDefault();
    go(href('find', { q: input.current!.value.trim() }));
  };
  return (
    <>
      <h1>Find</h1>
      <form class="filters" role="search" onSubmit={search}>
        <label>
          <span>Id of a job, or part of the name of a queue</span>
          <input class="whole" key={text} ref={input} defaultValue={text} data-search maxLength={255} />
        </label>
        <button type="submit" class="primary">
          Find
        </button>
      </form>
      {error && <p class="notice bad">{error.message}</p>}
      {isNothing && (
        <Card>
          <Empty title="Nothing was found.">
            No queue has this in its name, and no job has this id. Completed jobs are kept only with the
            option retention. To search for other texts, open the jobs of a queue.
          </Empty>
        </Card>
      )}
      {queues.length > 0 && (
        <Card title="Queues" id="found-queues">
          <ul class="plain">
            {queues.map((name) => (
              <li key={name} data-row>
                <a href={queuePath(name)}>{name}</a>
              </li>
            ))}
          </ul>
        </Card>
      )}
      {jobs && jobs.length > 0 && (
        <Card title="Jobs" id="found-jobs">
          <Table label="Jobs with this id" head={['Queue', 'Name', 'Id', 'State', 'Added']}>
            {jobs.map((job) => (
              <tr key={job.queue} data-row>
                <td class="text">{job.queue}</td>
                <th scope="row">{job.name === '' ? <i>unreadable</i> : job.name}</th>
                <td class="id">
                  <a href={jobPath(job.queue, job.id)}>{job.id}</a>
                </td>
                <td>
                  <State state={job.state} />
                </td>
                <td>
                  <Time at={job.createdAt} />
                </td>
              </tr>
            ))}
          </Table>
        </Card>
      )}
    </>
  );
}
