import { useEffect, useRef, useState } from 'preact/hooks';
import type { QueueDetail } from '../../lib/subpaths/dashboard/views.js';
import { del, post } from './api.js';
import { attempt } from './dialogs.js';
import { duration } from './format.js';
import { groupPath, queuePath } from './state.js';
import { Card, FormEnd } from './widgets.js';

type Limit = QueueDetail['limits'][number];
/** The target of the limit. */
export type Limited = Pick<Limit, 'of' | 'name'> & Partial<Limit>;

interface FormProps {
  queue: string;
  title: string;
  /** A limit of a job name that is not chosen yet: the form asks for the name. */
  limit: Limited;
  /** Names to choose from. */
  names: readonly string[];
  /** Whether this person may clear what was set at run time. */
  canClear: boolean;
  onEnd: () => void;
}

/** A form for the limit of the queue, of a name or of a group. */
export function LimitForm({ queue, title, limit, names, canClear, onEnd }: FormProps) {
  const { of, rate = null } = limit;
  const isPaused = of === 'group' && limit.paused === true;
  const [name, setName] = useState(limit.name);
  const given = {
    concurrency: String(limit.concurrency ?? ''),
    max: String(rate?.max ?? ''),
    per: rate ? duration(rate.perMs) : '',
    maxSize: String(limit.maxSize ?? ''),
    weight: String(limit.weight ?? ''),
  };
  const [form, setForm] = useState(given);
  const ref = useRef<HTMLFormElement>(null);
  // The button that opened the form is gone. After a long list, the form may be out of view.
  useEffect(() => ref.current?.querySelector('input')?.focus(), []);
  const at = of === 'group' ? `${groupPath(queue, name ?? '')}/limits` : `${queuePath(queue)}/limits`;
  const target = of === 'name' ? { name } : {};
  const save = async (event: Event) => {
    event.preventDefault();
    const { concurrency, max, per, maxSize, weight } = form;
    const isRateChanged = max !== given.max || per !== given.per;
    const change = {
      ...(concurrency !== given.concurrency && { concurrency: numberOf(concurrency) }),
      ...(isRateChanged && {
        rate: max === '' && per === '' ? null : { max: numberOf(max), per, ...(rate && windowOf(rate)) },
      }),
      ...(maxSize !== given.maxSize && { maxSize: numberOf(maxSize) }),
      // Each group has a weight. That of a group without a rule is 1.
      ...(weight !== given.weight && { weight: numberOf(weight) ?? 1 }),
    };
    const isNew = of === 'name' && limit.name === null;
    if (Object.keys(change).length === 0 && !isNew) return onEnd();
    if (await attempt('The limit is set.', () => post(at, { ...target, ...change }))) onEnd();
  };
  const clear = async () => {
    const done = `The limit of the code counts again${isPaused ? ', and the group is resumed' : ''}.`;
    if (await attempt(done, () => del(at, target))) onEnd();
  };
  const input = (field: keyof typeof form, label: string) => (
    <label>
      <span>{label}</span>
      <input
        value={form[field]}
        inputMode={field === 'per' ? 'text' : field === 'weight' ? 'decimal' : 'numeric'}
        onInput={(event) => setForm({ ...form, [field]: event.currentTarget.value.trim() })}
      />
    </label>
  );
  return (
    <Card title={`Limit of ${title}`} id="limit-form">
      <form ref={ref} onSubmit={(event) => void save(event)}>
        <p class="faint">It counts at once and in all processes. An empty field is no limit.</p>
        <div class="filters">
          {of === 'name' && limit.name === null && (
            <label>
              <span>Name of the job</span>
              <input
                required
                list="job-names"
                value={name ?? ''}
                onInput={(event) => setName(event.currentTarget.value.trim())}
              />
              <datalist id="job-names">
                {names.map((one) => (
                  <option key={one} value={one} />
                ))}
              </datalist>
            </label>
          )}
          {input('concurrency', 'Jobs at the same time')}
          {input('max', 'Starts')}
          {input('per', 'in, such as 1s or 10m')}
          {of === 'group' && input('maxSize', 'Jobs that may wait')}
          {of === 'group' && input('weight', 'Weight: 2 starts twice as many jobs')}
        </div>
        <FormEnd button="Set it" onEnd={onEnd}>
          {limit.isLive === true && canClear && (
            <button type="button" onClick={() => void clear()}>
              As in the code{isPaused && ', and resume'}
            </button>
          )}
        </FormEnd>
      </form>
    </Card>
  );
}

/** Null for an empty text. A text that is not a number is passed on, because the server refuses it. */
function numberOf(text: string): number | string | null {
  const number = Number(text);
  return text === '' ? null : Number.isNaN(number) ? text : number;
}

function windowOf({ window, burst }: NonNullable<Limit['rate']>) {
  return window === 'bucket' ? { window, burst } : { window };
}
