import { useEffect, useState } from 'preact/hooks';
import { ENDED_STATES } from '../../lib/job/job-state.js';
import { DEAD_REASONS } from '../../lib/job/outcome.js';
import {
  asSearchText,
  readSearchText,
  SEARCH_EXAMPLES,
  suggestionsFor,
} from '../../lib/subpaths/dashboard/search-text.js';
import type { QueueDetail, WorkersView } from '../../lib/subpaths/dashboard/views.js';
import { NameList, namesOf } from './add-job.js';
import { usePoll } from './api.js';
import { go, href, query, queuePath } from './state.js';

/** The filters of the page of jobs, which are in its address. */

const AGES = [
  ['', 'any age'],
  ['newerThan=10m', 'last 10 min'],
  ['newerThan=1h', 'last hour'],
  ['newerThan=1d', 'last day'],
  ['olderThan=10m', 'over 10 min'],
  ['olderThan=1h', 'over an hour'],
  ['olderThan=1d', 'over a day'],
] as const;

const AGE_KEYS = ['olderThan', 'newerThan'] as const;

export const FILTERS = [
  'name',
  'contains',
  'where',
  'group',
  'priority',
  'worker',
  'reason',
  'error',
  'errorText',
  'olderThan',
  'newerThan',
] as const;
/** Only dead jobs have a reason and the fingerprint of an error, and only running ones a worker. */
const OF_ONE_STATE = [
  ['reason', 'dead'],
  ['error', 'dead'],
  ['worker', 'active'],
] as const;
export const SIZES = [20, 50, 100, 200];

const NO_FILTER = {
  contains: '',
  name: '',
  where: '',
  group: '',
  reason: '',
  age: '',
  order: '',
  limit: '',
};
type Field = keyof typeof NO_FILTER;

/** Filters without a field in the form: the search sets them, and links. */
const CHIPS = [
  ['priority', 'priority'],
  ['worker', 'worker'],
  ['errorText', 'error with'],
  ['error', 'error'],
] as const;

/** The fields of the form, from the address. */
function fieldsOf(params: URLSearchParams): Record<Field, string> {
  const fields = Object.keys(NO_FILTER).map((field) => [field, params.get(field) ?? '']);
  const { contains, ...rest } = Object.fromEntries(fields) as Record<Field, string>;
  return { ...NO_FILTER, ...rest, contains: asSearchText(contains), age: listedAge(params) ?? '' };
}

/** The address of these fields; with the reason, if the text of the search cannot be read. */
function addressOf(
  queue: string,
  state: string,
  form: Record<Field, string>,
): { to: string; fault?: string } {
  const { age, contains, ...rest } = form;
  const read = readSearchText(contains);
  if ('fault' in read) return { to: '', fault: read.fault };
  const [key, time] = age.split('=');
  // A name of a job or group may begin or end with spaces.
  const { where, ...names } = rest;
  const shown = query.value;
  const params: Record<string, string | null> = {
    state,
    ...Object.fromEntries(CHIPS.map(([chip]) => [chip, shown.get(chip)])),
    ...Object.fromEntries(AGE_KEYS.map((one) => [one, customAge(shown, one)])),
    ...names,
    where: where.trim(),
    ...(key && { [key]: time }),
    ...read.params,
  };
  return { to: href(`${queuePath(queue)}/jobs`, inState(params['state']!, params)) };
}

/** The filters that jobs of this state have. */
export function inState(
  state: string,
  filters: Readonly<Record<string, string | null>>,
): Record<string, string | null> {
  const others = OF_ONE_STATE.flatMap(([key, only]) => (only === state ? [] : [[key, null] as const]));
  return { ...filters, state, ...Object.fromEntries(others) };
}

/** The age that the list shows; undefined: one that it does not have, or none. */
function listedAge(params: URLSearchParams): string | undefined {
  const listed = AGES.map(([age]) => age).filter((age) => {
    const [key, time] = age.split('=');
    return key && params.get(key) === time;
  });
  return listed[0];
}

/** An age that the list does not show: it has others, and only one at a time. */
function customAge(params: URLSearchParams, key: 'olderThan' | 'newerThan'): string | null {
  const value = params.get(key);
  return listedAge(params) === `${key}=${value}` ? null : value;
}

export function Filters({
  queue,
  state,
  canReadData,
}: {
  queue: string;
  state: string;
  canReadData: boolean;
}) {
  const params = query.value;
  const searched = fieldsOf(params);
  const [form, setForm] = useState(searched);
  const [fault, setFault] = useState<string | null>(null);
  const { data: known } = usePoll<QueueDetail>(queuePath(queue), 0);
  // Another page of the same search keeps the text that was typed since.
  useEffect(() => setForm(searched), [queue, JSON.stringify(searched)]);
  const submit = (event: Event) => {
    event.preventDefault();
    const { to, fault: found = null } = addressOf(queue, state, form);
    setFault(found);
    if (found === null) go(to);
  };
  const bind = (field: Field) => ({
    name: `f-${field}`,
    value: form[field],
    onInput: ({ currentTarget: { value } }: { readonly currentTarget: { readonly value: string } }) =>
      setForm((old) => ({ ...old, [field]: value })),
  });
  const clear = () => {
    setForm(NO_FILTER);
    setFault(null);
  };
  return (
    <form class="filters" onSubmit={submit} role="search">
      <label class="search">
        <span>Text in id, name or error, or filters</span>
        <input
          {...bind('contains')}
          class="search"
          data-search
          list="search-words"
          autoComplete="off"
          maxLength={400}
          placeholder="state:dead name:send error:timeout prio:>5"
          aria-describedby="search-help"
          aria-invalid={fault !== null}
        />
        <Suggestions queue={queue} known={known} text={form.contains} canReadData={canReadData} />
      </label>
      <button type="submit" class="primary">
        Search
      </button>
      <a class="button" href={href(`${queuePath(queue)}/jobs`, { state })} onClick={clear}>
        Clear
      </a>
      {fault !== null && (
        <p class="notice bad" role="alert">
          {fault}
        </p>
      )}
      <label>
        <span>Name</span>
        <input {...bind('name')} list="job-names" />
        <NameList id="job-names" queue={known} />
      </label>
      {canReadData && (
        <label>
          <span>Field of the data</span>
          <input {...bind('where')} placeholder="tenant.id=7" maxLength={1000} />
        </label>
      )}
      <label>
        <span>Group</span>
        <input {...bind('group')} />
      </label>
      <Choices state={state} bind={bind} />
      <Chips queue={queue} params={params} />
      <details id="search-help" class="faint">
        <summary>Filters in the search</summary>
        {SEARCH_EXAMPLES.join(', ')}. A text with a colon needs quotes, and so does a value with a space.
      </details>
    </form>
  );
}

interface SuggestionsProps {
  queue: string;
  known: QueueDetail | undefined;
  text: string;
  canReadData: boolean;
}

/** Searches that the browser offers while a person types. */
function Suggestions({ queue, known, text, canReadData }: SuggestionsProps) {
  const { data } = usePoll<WorkersView>(/\b(worker|node):/.test(text) ? 'workers' : null, 0);
  const processes = data?.workers.filter(({ pools }) => pools.some(({ queues }) => queues.includes(queue)));
  const places = processes?.flatMap(({ host, pid }) => [host, `${host}:${pid}`]) ?? [];
  const words = suggestionsFor(text, {
    canReadData,
    names: namesOf(known),
    groups: known?.limits.flatMap(({ of, name }) => (of === 'group' && name !== null ? [name] : [])) ?? [],
    workers: [...new Set(places)],
  });
  return (
    <datalist id="search-words">
      {words.map((word) => (
        <option key={word} value={word} />
      ))}
    </datalist>
  );
}

interface ChoicesProps {
  state: string;
  bind: (field: Field) => {
    readonly name: string;
    readonly value: string;
    readonly onInput: (event: { readonly currentTarget: { readonly value: string } }) => void;
  };
}

function Choices({ state, bind }: ChoicesProps) {
  const hasEnded = (ENDED_STATES as readonly string[]).includes(state);
  return (
    <>
      {state === 'dead' && (
        <label>
          <span>Reason</span>
          <select {...bind('reason')}>
            <option value="">any</option>
            {DEAD_REASONS.map((reason) => (
              <option key={reason}>{reason}</option>
            ))}
          </select>
        </label>
      )}
      <label>
        <span>Age</span>
        <select {...bind('age')}>
          {AGES.map(([value, text]) => (
            <option key={value} value={value}>
              {text}
            </option>
          ))}
        </select>
      </label>
      <label>
        <span>Order</span>
        <select {...bind('order')} value={bind('order').value || (hasEnded ? 'desc' : 'asc')}>
          <option value="asc">{hasEnded ? 'oldest first' : 'first to last'}</option>
          <option value="desc">{hasEnded ? 'newest first' : 'last to first'}</option>
        </select>
      </label>
      <label>
        <span>Per page</span>
        <select {...bind('limit')}>
          {SIZES.map((size) => (
            <option key={size} value={size === 50 ? '' : size}>
              {size}
            </option>
          ))}
        </select>
      </label>
    </>
  );
}

/** The filters that have no field, each with a link that removes it. */
function Chips({ queue, params }: { queue: string; params: URLSearchParams }) {
  const all = Object.fromEntries(params);
  const without = (key: string) =>
    href(`${queuePath(queue)}/jobs`, { ...all, [key]: null, cursor: null, looked: null });
  const ages = AGE_KEYS.flatMap((key) => {
    const value = customAge(params, key);
    return value ? [[key, key === 'olderThan' ? 'age over' : 'age under', value] as const] : [];
  });
  const given = CHIPS.flatMap(([key, word]) => {
    const value = params.get(key);
    return value ? [[key, word, value] as const] : [];
  });
  const shown = [...given, ...ages];
  if (shown.length === 0) return null;
  return (
    <p class="row chips">
      {shown.map(([key, word, value]) => (
        <a key={key} class="badge" href={without(key)} aria-label={`Remove the filter ${word} ${value}`}>
          {word} {value} ×
        </a>
      ))}
    </p>
  );
}
