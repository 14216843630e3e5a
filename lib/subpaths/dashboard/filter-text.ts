import { span } from './time-text.js';

/** Filters of jobs and targets of actions as readable text, for the pages and the command. */

const WORDS: Readonly<Record<string, string>> = {
  name: 'name',
  contains: 'text',
  where: 'data',
  group: 'group',
  reason: 'reason',
  error: 'error',
  errorText: 'error with',
  priority: 'priority',
  worker: 'worker',
  workers: 'workers',
  olderThan: 'age over',
  newerThan: 'age under',
};

/** `dead jobs with name digest, age under 1 h`. Ages are texts or ms. */
export function filterInWords(filter: Readonly<Record<string, unknown>>): string {
  const { state, limit, ...rest } = filter;
  const words = Object.entries(rest).map(
    ([key, value]) => `${WORDS[key] ?? key} ${key.endsWith('Than') ? age(value) : word(value)}`,
  );
  const kind = state === 'active' ? 'running ' : typeof state === 'string' ? `${state} ` : '';
  const number = typeof limit === 'number' ? `at most ${limit} ` : '';
  return `${number}${kind}jobs${words.length > 0 ? ` with ${words.join(', ')}` : ''}`;
}

/** An age in ms, or as it was given: `1h`. */
function age(value: unknown): string {
  if (typeof value === 'number') return span(value).replace('.0', '');
  const [, number, unit] = /^(\d+)(s|m|h|d)$/.exec(String(value)) ?? [];
  return number === undefined ? word(value) : `${number}\u00a0${unit === 'm' ? 'min' : unit}`;
}

function word(value: unknown): string {
  return Array.isArray(value) ? value.join(', ') : String(value);
}

/**
 * The target of an action, without JSON: the ids of jobs, a filter, or the change of a limit, perhaps after a name. `shared
 * openai {"rate":{"max":5}}` becomes `shared openai rate max 5`. A text that was cut is not JSON and stays.
 */
export function targetText(target: string): string {
  const [, name = '', json = target] = /^([^{]*)(\{.*\})$/s.exec(target) ?? [];
  try {
    const read: unknown = JSON.parse(json);
    if (Array.isArray(read)) return read.join(', ');
    if (typeof read !== 'object' || read === null) return target;
    const keys = Object.keys(read);
    if (keys.length === 0) return `${name}all jobs`;
    const isFilter = keys.every((key) => key in WORDS || key === 'state' || key === 'limit');
    return `${name}${isFilter ? filterInWords(read as Record<string, unknown>) : fieldsText(read)}`;
  } catch {
    return target;
  }
}

function fieldsText(fields: object): string {
  return Object.entries(fields)
    .map(([key, value]: [string, unknown]) => `${key} ${valueText(value)}`)
    .join(', ');
}

function valueText(value: unknown): string {
  if (value === null) return 'none';
  return typeof value === 'object' ? fieldsText(value).replaceAll(',', '') : `${value as string | number}`;
}
