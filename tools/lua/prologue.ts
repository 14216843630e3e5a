import { LETTERS } from '../../lib/job/job-id.js';
import { CORRUPT, STALLED, UNREADABLE } from '../../lib/contract/upkeep-verbs.js';
import { RULES } from '../../lib/job/rules.js';
import {
  isLetteredJobs,
  LETTERED_JOBS,
  SCRIPT_KEYS,
  typeOfKey,
  type ScriptKeyName,
} from '../../lib/engine/keys.js';
import type { SomeShape } from '../../lib/engine/script.js';

const FLAGS = { allow: '#!lua flags=allow-oom', refuse: '#!lua', read: '#!lua flags=no-writes' } as const;

/** Reasons of dead jobs that scripts set themselves. */
const RECORDS = { corruptRecord: CORRUPT, unreadableRecord: UNREADABLE, stalledRecord: STALLED };

/**
 * The parts of a script that come from its descriptor: its first lines, and the texts that replace the names of keys and
 * arguments.
 */
export interface Prologue {
  readonly lines: readonly string[];
  readonly names: ReadonlyMap<string, string>;
  /** The names that are local variables. */
  readonly locals: ReadonlySet<string>;
  /** The types of keys, by their names in the script. */
  readonly types: ReadonlyMap<string, string>;
}

/** The keys that a script with this text gets. */
export function keysIn(text: string): ScriptKeyName[] {
  const named = new Set(text.match(/\b(?:key_\w+|at_letter)\b/g));
  return SCRIPT_KEYS.filter((name) => named.has(isLetteredJobs(name) ? 'at_letter' : `key_${name}`));
}

export function prologueOf(shape: SomeShape, keys: readonly ScriptKeyName[]): Prologue {
  const names = new Map(Object.entries(RULES).map(([name, value]) => [`rule_${name}`, String(value)]));
  for (const [name, record] of Object.entries(RECORDS)) names.set(`rule_${name}`, `'${record}'`);
  const locals = new Set<string>();
  const lines: string[] = [FLAGS[shape.memory]];
  const types = new Map<string, string>();
  keys.forEach((name, i) => {
    if (isLetteredJobs(name)) return;
    names.set(`key_${name}`, `KEYS[${i + 1}]`);
    types.set(`key_${name}`, typeOfKey(name));
  });
  const letters = keys.indexOf(LETTERED_JOBS[0]!);
  // The number to which the code of a letter is added.
  if (letters >= 0) names.set('at_letter', String(letters + 1 - LETTERS[0].charCodeAt(0)));
  const each = shape.keysOfQueues;
  if (each) {
    names.set('queue_step', String(each.length));
    each.forEach((name, i) => names.set(`at_${name}`, String(i)));
  }
  names.set('more_first', String(keys.length + 1));
  names.set('more_last', '#KEYS');
  let at = 0;
  for (const [name, type] of Object.entries(shape.args)) {
    at += 1;
    names.set(`arg_${name}`, type === 'int' ? `tonumber(ARGV[${at}])` : `ARGV[${at}]`);
  }
  const lists = shape.lists ?? [];
  let start = String(at + lists.length + 1);
  for (const name of lists) {
    at += 1;
    lines.push(`local ${name}_first, ${name}_last = ${start}, ${start} + tonumber(ARGV[${at}]) - 1`);
    locals.add(`${name}_first`).add(`${name}_last`);
    start = `${name}_last + 1`;
  }
  return { lines, names, locals, types };
}
