import { readdirSync, readFileSync } from 'node:fs';
import { belongsTo } from '../../tools/lua/link.js';
import { sourceOf } from '#lib/engine/script.js';
import type { Patch } from '../support/patched-client.js';

/** One small mistake in one script. */
export interface Mutant {
  /** `exchange:47:2:drop`: file, line, which call or operator of that line, and what is done to it. */
  readonly id: string;
  /** The same with its text in place of its line, which changes with every edit above it. */
  readonly key: string;
  readonly file: string;
  readonly line: number;
  readonly kind: 'drop' | 'swap' | 'operator';
  /** The line it is in. */
  readonly code: string;
  readonly patch: Patch;
}

const SCRIPTS = new URL('../../lib/engine/scripts/', import.meta.url);

/** In place of a command: answers as if there were nothing, or does something else instead. */
const HELPERS = `
local function dropped_(command, key, ...)
  local many = { ZRANGE = 1, LRANGE = 1, SMEMBERS = 1, HKEYS = 1, SPOP = 1, LPOP = 1, ZPOPMIN = 1, XINFO = 1, LPOS = 1,
    HRANDFIELD = 1, SRANDMEMBER = 1 }
  if command == 'LPOS' and select('#', ...) == 1 then return false end
  if many[command] then return {} end
  if command == 'HMGET' or command == 'ZMSCORE' then local none = {} for i = 1, select('#', ...) do none[i] = false end return none end
  if command == 'SMISMEMBER' then local none = {} for i = 1, select('#', ...) do none[i] = 0 end return none end
  if command == 'HGET' or command == 'GET' or command == 'ZSCORE' then return false end
  if string.find(command, 'SCAN', 1, true) then return { '0', {} } end
  if command == 'TIME' then return { '0', '0' } end
  return 0
end
local function swapped_(command, key, ...)
  local other = { LPUSH = 'RPUSH', RPUSH = 'LPUSH', LPOP = 'RPOP', ZPOPMIN = 'ZPOPMAX', SADD = 'SREM' }
  local args = { ... }
  if command == 'HSET' then args[2] = args[2] .. '~' return redis.call(command, key, unpack(args)) end
  if command == 'SPOP' then return redis.call('SRANDMEMBER', key, unpack(args)) end
  if command == 'SREM' then
    local there = 0
    for i = 1, #args do there = there + redis.call('SISMEMBER', key, args[i]) end
    return there
  end
  if command == 'ZREM' then
    local there = 0
    for i = 1, #args do if redis.call('ZSCORE', key, args[i]) then there = there + 1 end end
    return there
  end
  if command == 'HDEL' then
    local there = 0
    for i = 1, #args do there = there + redis.call('HEXISTS', key, args[i]) end
    return there
  end
  if command == 'ZADD' and args[1] == 'XX' then return redis.call(command, key, 'NX', unpack(args, 2)) end
  if command == 'ZADD' then args[1] = tonumber(args[1]) == 0 and 1 or -tonumber(args[1]) return redis.call(command, key, unpack(args)) end
  if command == 'HINCRBY' then args[2] = args[2] + 1 return redis.call(command, key, unpack(args)) end
  if command == 'XADD' then args[#args] = args[#args] .. '~' return redis.call(command, key, unpack(args)) end
  if command == 'LREM' then args[1] = -args[1] return redis.call(command, key, unpack(args)) end
  if command == 'PEXPIRE' or command == 'EXPIRE' then args[1] = args[1] * 3 return redis.call(command, key, unpack(args)) end
  if command == 'SET' then args[3] = args[3] * 3 return redis.call(command, key, unpack(args)) end
  if command == 'ZREMRANGEBYRANK' then args[2] = args[2] + 1 return redis.call(command, key, unpack(args)) end
  if command == 'UNLINK' or command == 'DEL' then return redis.call(command, 'none' .. key) end
  if other[command] then return redis.call(other[command], key, unpack(args)) end
  local answer = redis.call(command, key, unpack(args))
  if type(answer) == 'number' then
    if command == 'SISMEMBER' or command == 'HEXISTS' then return 1 - answer end
    return answer + 1
  end
  if type(answer) == 'table' and #answer > 0 then
    if command == 'HMGET' or command == 'SMISMEMBER' then
      local first = table.remove(answer, 1)
      answer[#answer + 1] = first
      if #answer == 1 then answer[1] = command == 'SMISMEMBER' and 1 - first or not first and '9' or false end
    elseif string.find(command, 'SCAN', 1, true) then
      table.remove(answer[2], 1)
    else
      table.remove(answer)
    end
    return answer
  end
  if answer == false then return '9' end
  if type(answer) == 'string' then return false end
  return answer
end
`;

/**
 * Scripts and fragments of flow control, each with the specs of both engines (`test/conformance`) that test what it decides. What
 * they do wrong is seldom a call, and often a comparison or a sum.
 */
export const FLOW_CONTROL: Readonly<Record<string, readonly string[]>> = {
  charge: ['limits', 'limits-again', 'breakers', 'shared-limits'],
  'claim-limited': ['limits', 'limited-claims', 'lines', 'breakers', 'groups-again', 'in-flight'],
  'free-keys': ['unique'],
  limits: ['limits', 'breakers', 'shared-limits', 'groups-again'],
  report: ['breakers'],
  'set-limits': ['limits', 'limits-again', 'limited-claims', 'breakers'],
  share: ['shared-limits', 'breakers'],
  'wake-lines': ['limits'],
  'shared/aggregate': ['aggregate'],
  'shared/breakers': ['breakers'],
  'shared/corrections': ['shared-limits'],
  'shared/limits': ['limits', 'limited-claims', 'breakers', 'shared-limits'],
  'shared/lines': ['lines', 'limits', 'in-flight'],
  'shared/rates': ['limits', 'shared-limits'],
  'shared/shares': ['shared-limits', 'breakers'],
  'shared/slots': ['lines', 'limits', 'in-flight', 'groups-again'],
  'shared/unique': ['unique', 'aggregate'],
};

let made: readonly Mutant[] | undefined;

/**
 * All mutants: each call of Redis in each script left out, and each done wrongly; in flow control also each operator replaced.
 * Made once: each test of each spec asks for its mutant.
 */
export function allMutants(): readonly Mutant[] {
  return (made ??= makeMutants());
}

function makeMutants(): Mutant[] {
  const files = [
    ...luaIn('').map((name) => ({ name, file: name })),
    ...luaIn('shared/').map((name) => ({ name: `shared/${name}`, file: `shared/${name}` })),
  ];
  return files.flatMap(({ file }) =>
    mutantsOf(file, readFileSync(new URL(`${file}.lua`, SCRIPTS), 'utf8').trimEnd()),
  );
}

/** `none` is no mistake, but another text: with it every test must pass. */
const NONE: Mutant = {
  id: 'none',
  key: '',
  file: '',
  line: 0,
  kind: 'drop',
  code: '',
  patch: (_, whole) => whole.replace('\n', () => `\n${HELPERS}`),
};

export function mutantOf(id: string): Mutant {
  if (id === NONE.id) return NONE;
  const found = allMutants().find((mutant) => mutant.id === id);
  if (!found) throw new Error(`there is no mutant ${id}`);
  return found;
}

function luaIn(folder: string): string[] {
  return readdirSync(new URL(folder === '' ? './' : folder, SCRIPTS))
    .filter((name) => name.endsWith('.lua'))
    .map((name) => name.slice(0, -'.lua'.length));
}

/** Of each script the lines of its text, by where they were written; a function of a fragment is in it once. */
const placesOf = new Map<string, ReadonlyMap<string, number>>();

/** Changes the line of a script that was written at this place, if it has that. */
function inLine(script: string, text: string, source: string, change: (its: string) => string): string {
  const lines = text.split('\n');
  let places = placesOf.get(script);
  if (!places) placesOf.set(script, (places = new Map(lines.map((_, i) => [sourceOf(script, i + 1), i]))));
  const at = places.get(source);
  if (at === undefined) return text;
  lines[at] = change(lines[at]!);
  return lines.join('\n');
}

function replaceNth(line: string, nth: number, helper: string): string {
  let seen = 0;
  return line.replaceAll(/redis\.p?call(?=\('\w+')/g, (call) => (++seen === nth ? helper : call));
}

/** The replacements of an operator. */
const INSTEAD: Readonly<Record<string, string>> = {
  '+': '-',
  '-': '+',
  '*': '/',
  '/': '*',
  '<': '<=',
  '<=': '<',
  '>': '>=',
  '>=': '>',
  and: 'or',
  or: 'and',
};
/** Texts and comments, which are passed over, and operators. */
const TOKENS = /'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|--.*|[<>=~]=|[<>+*/-]|\b(?:and|or)\b/g;
/** A `-` behind one of these, or behind no word at all, is the sign of a number. */
const BEFORE_SIGN = /(?:^|[^\w)\]'"]|\b(?:and|or|not|return|then|else|if|elseif|in|do|while|until))$/;

function operatorsIn(line: string): { at: number; operator: string }[] {
  return [...line.matchAll(TOKENS)].flatMap(({ 0: operator, index: at }) => {
    const isSign = operator === '-' && BEFORE_SIGN.test(line.slice(0, at).trimEnd());
    return operator in INSTEAD && !isSign ? [{ at, operator }] : [];
  });
}

function replaceOperator(line: string, nth: number): string {
  const found = operatorsIn(line)[nth - 1];
  if (!found) return line;
  const { at, operator } = found;
  return line.slice(0, at) + INSTEAD[operator]! + line.slice(at + operator.length);
}

const callsIn = (line: string) => line.match(/redis\.p?call\('\w+'/g)?.length ?? 0;

function mutantsOf(file: string, text: string): Mutant[] {
  const lines = text.split('\n').map((one) => one.trim());
  return lines.flatMap((code, i) => {
    const line = i + 1;
    // The rest of a statement is sent in the line where the statement begins.
    let first = line;
    while (first > 1 && belongsTo(lines[first - 2]!, lines[first - 1]!)) first -= 1;
    const before = lines.slice(first - 1, line - 1);
    const kinds = [
      {
        kind: 'drop',
        countIn: callsIn,
        change: (its: string, nth: number) => replaceNth(its, nth, 'dropped_'),
      },
      {
        kind: 'swap',
        countIn: callsIn,
        change: (its: string, nth: number) => replaceNth(its, nth, 'swapped_'),
      },
      { kind: 'operator', countIn: (its: string) => operatorsIn(its).length, change: replaceOperator },
    ] as const;
    return kinds.flatMap(({ kind, countIn, change }): Mutant[] => {
      if (kind === 'operator' && !(file in FLOW_CONTROL)) return [];
      const inFront = before.reduce((sum, its) => sum + countIn(its), 0);
      return Array.from({ length: countIn(code) }, (_, at): Mutant => {
        const nth = at + 1;
        const patch: Patch = (name, whole) => {
          const mutated = inLine(name, whole, `${file}.lua:${first}`, (its) => change(its, inFront + nth));
          return mutated === whole ? whole : mutated.replace('\n', () => `\n${HELPERS}`);
        };
        const key = `${file} | ${kind} ${nth} | ${code}`;
        return { id: `${file}:${line}:${nth}:${kind}`, key, file, line, kind, code, patch };
      });
    });
  });
}
