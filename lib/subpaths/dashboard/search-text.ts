import { JOB_STATES } from '../../job/job-state.js';
import { DEAD_REASONS } from '../../job/outcome.js';

/** The one-line search of the page of jobs: `name:send state:dead prio:>5 timeout`. */

/** What may stand before a colon, the filter of the address that it sets, and an example. */
const KEYS = [
  ['state', 'state', 'dead'],
  ['name', 'name', 'send'],
  ['error', 'errorText', 'timeout'],
  ['prio', 'priority', '>5'],
  ['group', 'group', 'acme'],
  ['reason', 'reason', 'expired'],
  ['worker', 'worker', 'host-1'],
  ['older', 'olderThan', '1h'],
  ['newer', 'newerThan', '10m'],
  ['data.field', 'where', '7'],
] as const;

export type SearchParam = (typeof KEYS)[number][1] | 'contains';

/** Other words for the same. */
const ALIASES: Readonly<Record<string, string>> = { status: 'state', priority: 'prio', node: 'worker' };

/** Examples of all keys, for help: `state:dead`. */
export const SEARCH_EXAMPLES = KEYS.map(([key, , example]) => `${key}:${example}`);

export type SearchText =
  | { readonly params: Readonly<Partial<Record<SearchParam, string>>> }
  /** Why the text cannot be read. */
  | { readonly fault: string };

const TOKEN = /(?:([a-z]+(?:\.[^\s:"]+)?):)?("(?:[^"\\]|\\.)*"(?!\S)|\S+)/g;

/** Reads the text as filters of the address. Words without a key are searched as one text. */
export function readSearchText(text: string): SearchText {
  const words: string[] = [];
  const params: Partial<Record<SearchParam, string>> = {};
  for (const [token, given, word = ''] of text.matchAll(TOKEN)) {
    const missing = given === undefined ? /^([a-z]+):$/.exec(token)?.[1] : undefined;
    if (missing !== undefined && paramOf(missing)) return { fault: `${missing}: has no value.` };
    const value = unquoted(word);
    if (given === undefined) {
      words.push(value);
      continue;
    }
    const param = paramOf(given);
    if (param === undefined) return { fault: unknown(given) };
    if (params[param] !== undefined) return { fault: `${given}: can be given once.` };
    params[param] = param === 'where' ? conditionOf(given, value, word) : value;
  }
  if (words.length > 0) params.contains = words.join(' ');
  return checked(params);
}

/** The text that `readSearchText` reads as this text to search. */
export function asSearchText(contains: string): string {
  const read = readSearchText(contains);
  const isSame = contains === '' || ('params' in read && read.params.contains === contains);
  const isAlone = 'params' in read && Object.keys(read.params).length <= 1;
  return isSame && isAlone ? contains : `"${contains.replaceAll(/["\\]/g, '\\$&')}"`;
}

function paramOf(given: string): SearchParam | undefined {
  if (given.startsWith('data.')) return 'where';
  const key = Object.hasOwn(ALIASES, given) ? ALIASES[given] : given;
  return KEYS.find(([name]) => name === key)?.[1];
}

/** `tenant.id=7`. A value in quotes is a text, also if it looks like a number. */
function conditionOf(given: string, value: string, word: string): string {
  return `${given.slice('data.'.length)}=${word === value ? value : JSON.stringify(value)}`;
}

function unquoted(word: string): string {
  const isQuoted = word.length > 1 && word.startsWith('"') && word.endsWith('"');
  return isQuoted ? word.slice(1, -1).replaceAll(/\\(.)/g, '$1') : word;
}

function unknown(given: string): string {
  const keys = KEYS.map(([key]) => key).join(', ');
  return `There is no key ${given}. The keys are ${keys}. A text with a colon needs quotes: "${given}:…"`;
}

function checked(params: Partial<Record<SearchParam, string>>): SearchText {
  const { reason, worker } = params;
  const state = params.state === 'running' ? 'active' : params.state;
  if (state !== undefined && !(JOB_STATES as readonly string[]).includes(state))
    return { fault: `There is no state ${state}. The states are ${JOB_STATES.join(', ')}.` };
  if (reason !== undefined && !(DEAD_REASONS as readonly string[]).includes(reason))
    return { fault: `There is no reason ${reason}. The reasons are ${DEAD_REASONS.join(', ')}.` };
  // Only dead jobs have a reason, and only running ones a worker.
  const implied = reason !== undefined ? 'dead' : worker !== undefined ? 'active' : undefined;
  const chosen = state ?? implied;
  return { params: { ...params, ...(chosen !== undefined && { state: chosen }) } };
}
