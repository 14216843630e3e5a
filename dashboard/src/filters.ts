import { span } from './format.js';

/** Filters of jobs as readable text. */

const WORDS: Readonly<Record<string, string>> = {
  name: 'name',
  contains: 'text',
  where: 'data',
  group: 'group',
  reason: 'reason',
  error: 'error',
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

/** The target of an action if it is a filter or a list of ids, as JSON, with a word before it or not. Otherwise null. */
export function targetInWords(target: string): string | null {
  const [, verb = '', json = ''] = /^([a-z]+ )?([{[].*[}\]])$/s.exec(target) ?? [];
  try {
    const read: unknown = JSON.parse(json);
    if (Array.isArray(read)) return `${verb}${read.join(', ')}`;
    const keys = Object.keys(read as object);
    const isFilter = keys.every((key) => key in WORDS || key === 'state' || key === 'limit');
    return isFilter ? `${verb}${filterInWords(read as Record<string, unknown>)}` : null;
  } catch {
    return null;
  }
}
