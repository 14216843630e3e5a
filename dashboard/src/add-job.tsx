import { useEffect, useState } from 'preact/hooks';
import { parseExact, printExact } from '../../lib/subpaths/dashboard/exact-json.js';
import type { JobDetail, QueueDetail } from '../../lib/subpaths/dashboard/views.js';
import { post, usePoll } from './api.js';
import { attempt } from './dialogs.js';
import { go, jobPath, queuePath, say } from './state.js';
import { Card, FormEnd } from './widgets.js';

interface AddJobProps {
  queue: string;
  name: string;
  /** A job to begin with. */
  like?: JobDetail;
  onEnd: () => void;
}

/** A form for a new job. */
export function AddJob({ queue, name: first, like, onEnd }: AddJobProps) {
  const tree = like?.data && parseExact(like.data.json);
  const [name, setName] = useState(first);
  const [data, setData] = useState(tree ? printExact(tree, '  ') : '{}');
  const [id, setId] = useState('');
  const [delay, setDelay] = useState('');
  const [priority, setPriority] = useState(String(like?.priority || ''));
  const ofLike = like?.options['attempts'];
  const [attempts, setAttempts] = useState(typeof ofLike === 'number' ? String(ofLike) : '');
  const [group, setGroup] = useState(like?.group ?? '');
  const { data: known } = usePoll<QueueDetail>(queuePath(queue), 0);
  const isChecked = known !== undefined && Object.hasOwn(known.definitions, name);
  const example = known?.definitions[name] ?? '{}';
  const [shown, setShown] = useState(data);
  // Text that a person has typed stays.
  useEffect(() => {
    if (like || data !== shown) return;
    setData(example);
    setShown(example);
  }, [example]);
  const isGood = parseExact(data) !== null;
  const add = async (event: Event) => {
    event.preventDefault();
    const body = {
      name,
      data,
      ...(id && { id }),
      ...(delay && { delay }),
      ...(priority && { priority: Number(priority) }),
      ...(attempts && { attempts: Number(attempts) }),
      ...(group && { group }),
      ...(like && { like: like.id }),
    };
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
    <Card title={like ? 'Add a job like this one' : 'Add a job'} id="add-job">
      <form onSubmit={(event) => void add(event)}>
        <div class="filters">
          <label>
            <span>Name of the job</span>
            <input
              value={name}
              list="new-job-names"
              required
              onInput={(event) => setName(event.currentTarget.value)}
              autoFocus
            />
            <NameList id="new-job-names" queue={known} />
          </label>
          <label>
            <span>Delay, such as 10m</span>
            <input value={delay} onInput={(event) => setDelay(event.currentTarget.value)} />
          </label>
          <NumberField label="Priority, 1 is first" value={priority} set={setPriority} />
          <NumberField label="Attempts" value={attempts} set={setAttempts} />
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
          <span>
            Data of the new job as JSON; {isChecked ? 'its schema checks it' : 'no schema checks it'}
          </span>
          <textarea
            class="code"
            spellcheck={false}
            rows={Math.min(24, Math.max(6, data.split('\n').length + 1))}
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

interface NumberFieldProps {
  label: string;
  value: string;
  set: (value: string) => void;
}

function NumberField({ label, value, set }: NumberFieldProps) {
  return (
    <label>
      <span>{label}</span>
      <input type="number" min={1} value={value} onInput={(event) => set(event.currentTarget.value)} />
    </label>
  );
}

/** The names of jobs with a definition, and of the jobs of the last 7 days. */
export function namesOf(queue: QueueDetail | undefined): string[] {
  const names = new Set([...Object.keys(queue?.definitions ?? {}), ...Object.keys(queue?.byName ?? {})]);
  names.delete('');
  return [...names];
}

/** The names that inputs with this list offer. */
export function NameList({ id, queue }: { id: string; queue: QueueDetail | undefined }) {
  return (
    <datalist id={id}>
      {namesOf(queue).map((name) => (
        <option key={name} value={name} />
      ))}
    </datalist>
  );
}
