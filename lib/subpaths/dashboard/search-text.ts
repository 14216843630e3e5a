import { JOB_STATES } from '../../job/job-state.js';
import { DEAD_REASONS } from '../../job/outcome.js';

/** The one-line search of the page of jobs: `name:send state:dead prio:>5 timeout`. */

/** The words allowed before a colon, the filter of the address that each sets, and an example. */
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

type SearchParam = (typeof KEYS)[number][1] | 'contains';

/** Other words for the same. */
const ALIASES: Readonly<Record<string, string>> = { status: 'state', priority: 'prio', node: 'worker' };

/** Examples of all keys, for help: `state:dead`. */
export const SEARCH_EXAMPLES = KEYS.map(([key, , example]) => `${key}:${example}`);

type SearchText =
  | { readonly params: Readonly<Partial<Record<SearchParam, string>>> }
  /** Why the text cannot be read. */
  | { readonly fault: string };

const TOKEN = /(?:([a-z]+(?:\.[^\s:"]+)?):)?("(?:[^"\\]|\\.)*"(?!\S)|\S+)/g;

/** Reads the text as filters of the address. Words without a key are searched as one text. */
export function readSearchText(text: string): SearchText {
  const words: string[] = [];
  const params: Partial<Record<SearchParam, string>> = {};
  const unknown: string[] = [];
  for (const [token, given, word = ''] of text.matchAll(TOKEN)) {
    const missing = given === undefined ? /^([a-z]+):$/.exec(token)?.[1] : undefined;
    if (missing !== undefined && paramOf(missing)) return { fault: `${missing}: has no value.` };
    const value = unquoted(word);
    if (given === undefined) {
      words.push(value);
      continue;
    }
    const param = paramOf(given);
    if (param === undefined) {
      unknown.push(given);
      continue;
    }
    if (params[param] !== undefined) return { fault: `${given}: can be given once.` };
    params[param] = param === 'where' ? conditionOf(given, value, word) : value;
  }
  if (unknown.length > 0) return { fault: ofUnknown([...new Set(unknown)]) };
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

/** Completions of the last word of a search, besides states and reasons. */
interface KnownWords {
  readonly canReadData: boolean;
  readonly names: readonly string[];
  readonly groups: readonly string[];
  /** Hosts, and processes as `host:pid`. */
  readonly workers: readonly string[];
}

const AGES = ['10m', '1h', '1d'];
const MOST_SUGGESTED = 50;

/** Whole searches that begin with this text, with its last word completed. */
export function suggestionsFor(text: string, known: KnownWords): string[] {
  const [, before = '', last = ''] = /^(.*\s)?(\S*)$/s.exec(text) ?? [];
  const [, given] = /^([a-z]+):/.exec(last) ?? [];
  const key = given && Object.hasOwn(ALIASES, given) ? ALIASES[given] : given;
  const values = new Map<string | undefined, readonly string[]>(
    Object.entries({
      state: JOB_STATES.map((state) => (state === 'active' ? 'running' : state)),
      reason: DEAD_REASONS,
      prio: ['>0', '1-5'],
      older: AGES,
      newer: AGES,
      name: known.names,
      group: known.groups,
      worker: known.workers,
    }),
  );
  const keys = KEYS.flatMap(([name, param]) => (param === 'where' ? [] : [`${name}:`]));
  const words =
    key === undefined
      ? [...keys, ...(known.canReadData ? ['data.'] : [])]
      : (values.get(key) ?? []).map((value) => `${given}:${asValue(value)}`);
  return words
    .filter((word) => word !== last && word.toLowerCase().startsWith(last.toLowerCase()))
    .slice(0, MOST_SUGGESTED)
    .map((word) => before + word);
}

/** A value so that it is read as the same value again. */
function asValue(value: string): string {
  return /^[^\s"]+$/.test(value) ? value : `"${value.replaceAll(/["\\]/g, '\\$&')}"`;
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

function ofUnknown(given: readonly string[]): string {
  const keys = KEYS.map(([key]) => key).join(', ');
  return `There is no key ${given.join(' or ')}. The keys are ${keys}. A text with a colon needs quotes: "${given[0]}:…"`;
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
