import { useState } from 'preact/hooks';
import { parseExact } from '../../lib/subpaths/dashboard/exact-json.js';
import { post } from './api.js';
import { attempt } from './dialogs.js';
import { go, jobPath, queuePath, say } from './state.js';
import { Card, FormEnd } from './widgets.js';

/** A form for a new job. */
export function AddJob({ queue, name: known, onEnd }: { queue: string; name: string; onEnd: () => void }) {
  const [name, setName] = useState(known);
  const [data, setData] = useState('{}');
  const [id, setId] = useState('');
  const [delay, setDelay] = useState('');
  const [group, setGroup] = useState('');
  const isGood = parseExact(data) !== null;
  const add = async (event: Event) => {
    event.preventDefault();
    const body = { name, data, ...(id && { id }), ...(delay && { delay }), ...(group && { group }) };
    let added: { id: string; duplicate: boolean } | undefined;
    const isDone = await attempt('The job is added.', async () => {
      added = await post<{ id: string; duplicate: boolean }>(`${queuePath(queue)}/jobs`, body);
    });
    if (!isDone || !added) return;
    if (added.duplicate) say('There is a job with this id already; nothing was added.', true);
    onEnd();
    go(jobPath(queue, added.id));
  };
  return (
    <Card title="Add a job" id="add-job">
      <form onSubmit={(event) => void add(event)}>
        <div class="filters">
          <label>
            <span>Name of the job</span>
            <input value={name} required onInput={(event) => setName(event.currentTarget.value)} autoFocus />
          </label>
          <label>
            <span>Delay, such as 10m</span>
            <input value={delay} onInput={(event) => setDelay(event.currentTarget.value)} />
          </label>
          <label>
            <span>Group</span>
            <input value={group} onInput={(event) => setGroup(event.currentTarget.value)} />
          </label>
          <label>
            <span>Own id</span>
            <input value={id} onInput={(event) => setId(event.currentTarget.value)} />
          </label>
        </div>
        <label class="field">
          <span>Data of the new job as JSON; no schema checks it</span>
          <textarea
            class="code"
            spellcheck={false}
            rows={6}
            value={data}
            aria-invalid={!isGood}
            onInput={(event) => setData(event.currentTarget.value)}
          />
        </label>
        <FormEnd button="Add it" isJson={isGood} onEnd={onEnd} />
      </form>
    </Card>
  );
}
