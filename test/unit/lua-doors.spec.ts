import { expect, it } from 'vitest';
import { sourcesIn } from '../support/sources.js';

// Every move of a job is a function of one fragment, and nothing else writes the keys of that fragment. Every fragment
// may read them.

/** The keys that only this fragment writes, and which other fragments do, with the reason. */
const DOORS: Readonly<
  Record<string, { keys: readonly string[]; others?: Readonly<Record<string, string>> }>
> = {
  bodies: {
    keys: ['jobs', 'bodies'],
    others: { 'enqueue-plain': 'plain jobs', 'enqueue-end': 'plain jobs' },
  },
  line: {
    keys: ['wait', 'prioritized', 'suspects', 'delayed', 'priorities'],
    others: {
      'enqueue-plain': 'plain jobs',
      'enqueue-end': 'plain jobs',
      claim: 'a claim at the bell, which it takes back where it cannot be made',
      repair: 'jobs in several places',
    },
  },
  lines: {
    keys: ['grouped', 'lines', 'lineStates', 'resting', 'meta lines', 'meta turn'],
    others: {
      'shared/line': 'a job that leaves, wherever it waits',
      'shared/front': 'jobs whose worker was lost',
      'wake-lines': 'lines whose rule has changed',
      repair: 'jobs in several places',
    },
  },
  slots: {
    keys: ['slots'],
    others: { 'set-limits': 'jobs that run already' },
  },
  limits: {
    keys: ['limits', 'limitStates', 'meta limited'],
    others: {
      charge: 'what handlers say',
      'set-limits': 'what people say',
      'claim-limited': 'limits that are over',
      obliterate: 'limits in the code stay',
      report: 'breakers that open or close',
      'shared/breakers': 'what breakers count',
    },
  },
  shares: { keys: ['shares'] },
  hold: {
    keys: ['active', 'workers'],
    others: { claim: 'a claim at the bell, which it takes back where it cannot be made' },
  },
  unique: { keys: ['unique'] },
  gate: { keys: ['meta paused'] },
  full: { keys: ['meta full'] },
  ending: {
    keys: ['dead', 'completed', 'results', 'cancelled'],
    others: { repair: 'jobs in several places' },
  },
  lane: { keys: ['lane'], others: { 'enqueue-plain': 'plain jobs' } },
  event: {
    keys: ['events', 'meta events'],
    others: {
      'enqueue-plain': 'plain jobs',
      obliterate: 'the number of the last event stays',
      trim: 'events that are too old',
      'shared/large-values': 'events that are too large together',
    },
  },
  bell: { keys: ['doorbell'], others: { 'enqueue-plain': 'plain jobs' } },
  traces: {
    keys: ['attempts', 'stalls', 'failures', 'progress', 'toCancel'],
    others: {
      note: 'what a run says of itself',
      repair: 'numbers that cannot be read',
      'shared/front': 'the mark of a job that was given back',
      'shared/large-values': 'progress beyond its bytes',
    },
  },
};

const READS =
  /^(EXISTS|GET|H(GET|MGET|LEN|EXISTS|KEYS|SCAN|STRLEN|GETALL|RANDFIELD)|L(LEN|RANGE|POS|INDEX)|S(CARD|ISMEMBER|MISMEMBER|MEMBERS|RANDMEMBER)|TYPE|X(RANGE|INFO)|Z(CARD|COUNT|MSCORE|RANGE|SCORE))$/;

/** Keys that a file writes: `wait`. For `meta`, which has several owners, with the field. */
function writesOf(text: string): string[] {
  const code = text.replaceAll(/--.*$/gm, '');
  const calls = [...code.matchAll(/redis\.p?call\('(\w+)', key_(\w+)(?:, '(\w+)')?/g)];
  const direct = calls
    .filter(([, command]) => !READS.test(command!))
    .map(([, , key, field]) => (key === 'meta' ? `meta ${field}` : key!));
  // `for _, key in ipairs({ key_a, key_b }) do redis.call('HDEL', key, …)`
  const loops = [...code.matchAll(/ipairs\(\{([^}]*)\}\) do[^]*?redis\.p?call\('(\w+)', key\b/g)];
  const looped = loops
    .filter(([, , command]) => !READS.test(command!))
    .flatMap(([, keys]) => [...keys!.matchAll(/key_(\w+)/g)].map(([, key]) => key!));
  return [...new Set([...direct, ...looped])];
}

const files = sourcesIn('lib/engine/scripts', ['.lua']).map(({ path, text }) => ({
  name: path.replace('lib/engine/scripts/', '').replace(/\.lua$/, ''),
  writes: writesOf(text),
}));

it.each(Object.entries(DOORS))('only the fragment %s writes its keys', (door, { keys, others = {} }) => {
  const writers = files.filter(({ writes }) => writes.some((key) => keys.includes(key)));
  const strangers = writers.map(({ name }) => name).filter((name) => name !== `shared/${door}`);
  // `ending` and `settle` delete what jobs leave. `traces` owns only the fields of jobs that have not ended.
  const allowed = door === 'traces' ? [...Object.keys(others), 'shared/ending'] : Object.keys(others);
  const advice = `call a function of shared/${door}, or add the file to its others in DOORS with the reason`;
  expect(strangers.toSorted(), advice).toEqual(allowed.toSorted());
});

it('detects which keys a file writes', () => {
  const text = `
    redis.call('LLEN', key_wait) -- redis.call('DEL', key_dead)
    redis.pcall('RPUSH', key_wait, id)
    redis.call('HSET', key_meta, 'paused', now)
    for _, key in ipairs({ key_results, key_logs }) do redis.call('HDEL', key, id) end
    for _, key in ipairs({ key_stalls }) do n = n + redis.call('HLEN', key) end`;
  expect(writesOf(text)).toEqual(['wait', 'meta paused', 'results', 'logs']);
});
