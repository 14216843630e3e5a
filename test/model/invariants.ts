import type { LimitRule } from '#lib/contract/limit-verbs.js';
import type { JobState } from '#lib/job/job-state.js';
import { RULES } from '#lib/job/rules.js';
import { membersOf, valuesOf, workersThatHold, type State } from './state.js';

/** Times to live of keys that have one, rounded up as in a `State`. */
const TIMES_TO_LIVE: readonly (readonly [RegExp, number])[] = [
  [/^lane:/, 600_000],
  [/^worker:/, 86_400_000],
  [/^cancelled$/, 60_000],
];
/** Fields by job that must not outlive the job. */
const TRACES = ['attempts', 'stalls', 'failures', 'results', 'progress', 'logs', 'priorities'];

/**
 * The rules that hold at any time; returns the broken ones as sentences. Written without the auditor of the library, so
 * that one mistake cannot hide in both.
 */
export function brokenRules(state: State, now: number): string[] {
  const faults: string[] = [];
  const rule = (holds: boolean, text: string) => {
    if (!holds) faults.push(text);
  };
  const places = new Map<string, string[]>();
  for (const [id, { key }] of everyPlace(state)) places.set(id, [...(places.get(id) ?? []), key]);

  const leases = valuesOf(state, 'workers');
  for (const worker of workersThatHold(state)) {
    const lease = leases.get(worker);
    rule(lease !== undefined, `${worker} holds jobs and has no lease`);
    const isKnown = membersOf(state, `worker:${worker}`).includes('seq');
    rule(isKnown || Number(lease) <= now, `${worker} holds jobs under a lease and is not known`);
  }
  const bodies = new Set(membersOf(state, 'jobs'));
  for (const id of bodies) rule(places.has(id), `${id} has a body and is nowhere`);
  for (const [id, at] of places) {
    rule(bodies.has(id), `${id} is in ${at.join()} and has no body`);
    rule(at.length === 1, `${id} is in ${at.join()}`);
  }
  for (const trace of TRACES)
    for (const id of membersOf(state, trace)) rule(bodies.has(id), `${id} is gone and has ${trace}`);

  const isIn = (id: string, place: string) => places.get(id)?.[0]?.startsWith(place) === true;
  for (const id of membersOf(state, 'results'))
    rule(isIn(id, 'completed'), `${id} has a result and has not completed`);
  const results = new Set(membersOf(state, 'results'));
  for (const id of membersOf(state, 'completed'))
    rule(results.has(id), `${id} has completed without a record of it`);
  const failures = new Set(membersOf(state, 'failures'));
  for (const id of membersOf(state, 'dead')) rule(failures.has(id), `${id} is dead without a record of it`);
  for (const id of membersOf(state, 'priorities'))
    rule(isIn(id, 'delayed'), `${id} has a priority put by and is not delayed`);
  for (const id of membersOf(state, 'toCancel'))
    rule(isIn(id, 'active:'), `${id} was signalled and is not active`);
  const ranks = [...valuesOf(state, 'prioritized').values()];
  rule(new Set(ranks).size === ranks.length, 'two jobs have one rank');

  const lines = valuesOf(state, 'lineStates');
  for (const [line, number] of valuesOf(state, 'lines'))
    rule(lines.has(number), `line ${JSON.stringify(line)} has no state`);
  rule(lines.size === membersOf(state, 'lines').length, 'a line has a state and no name');
  for (const [id, score] of valuesOf(state, 'grouped')) {
    const number = String(Math.floor(Number(score) / 4_294_967_296)).padStart(7, '0');
    rule(lines.has(number), `${id} is in a line that is none`);
  }
  checkLines(state, rule);
  for (const [id, score] of valuesOf(state, 'slots')) {
    rule(bodies.has(id) && !isIn(id, 'completed'), `${id} has a slot and is gone`);
    rule(Number(score) % 1 > 0 || isIn(id, 'active:'), `${id} has a slot and is not active`);
  }

  const known = /^(\{[^{}]+\}:|active:|worker:|lane:)?[\w.-]*$/;
  for (const [key, { until }] of Object.entries(state)) {
    rule(known.test(key), `${key} is no key of ours`);
    const ttl = TIMES_TO_LIVE.find(([name]) => name.test(key))?.[1];
    rule(until === ttl, `${key} lives for ${until} ms, not for ${ttl}`);
  }
  return faults;
}

/** A line that has jobs and may give one is in `ready` or `resting`, or its jobs would wait forever. */
function checkLines(state: State, rule: (holds: boolean, text: string) => void): void {
  const watched = new Set([...membersOf(state, 'ready'), ...membersOf(state, 'resting')]);
  const numberOf = (score: string) => String(Math.floor(Number(score))).padStart(7, '0');
  const slots = [...valuesOf(state, 'slots').values()].map(Number);
  const running = new Set(slots.map((score) => numberOf(String(score))));
  const stopped = new Set(slots.map((score) => numberOf(String(score - RULES.stoppedLines))));
  const filled = new Set(
    [...valuesOf(state, 'grouped').values()].map((score) => numberOf(String(Number(score) / 4_294_967_296))),
  );
  const numbers = valuesOf(state, 'lines');
  for (const [number, text] of valuesOf(state, 'lineStates')) {
    // Jobs of a line that have a priority count too.
    if (text === '') continue;
    const [, priorities, name] = /^\d+ ([\d,]+) (.*)$/s.exec(text)!;
    const own = priorities!
      .split(',')
      .map((each) => (each === '0' ? number : numbers.get(`${name}\n${each}`)));
    if (watched.has(number) || running.has(number) || limitOf(state, name!).paused) continue;
    if (stopped.has(number) && limitOf(state, 'g').onDead === 'block') continue;
    rule(
      !own.some((each) => filled.has(each!)),
      `the line of ${name} has jobs, none runs, and nobody looks at it`,
    );
  }
}

/** The rule of a queue, of all groups, of a group or of a name. */
export function limitOf(state: State, field: string): LimitRule {
  const rules = valuesOf(state, 'limits');
  const own = (of: string): LimitRule => {
    const { code, live } = JSON.parse(rules.get(of) ?? '{}') as { code?: LimitRule; live?: LimitRule };
    return { ...code, ...live };
  };
  return field.startsWith('g:') ? { ...own('g'), ...own(field) } : own(field);
}

export interface Place {
  readonly state: JobState;
  readonly key: string;
  /** The worker that holds the job. */
  readonly worker?: string;
  /** Score of its sorted set: when the job may run, died, or will be removed. */
  readonly at?: number;
}

/** The one place of each job. */
export function placesIn(state: State): ReadonlyMap<string, Place> {
  return new Map(everyPlace(state));
}

function* everyPlace(state: State): Generator<[string, Place]> {
  for (const key of ['wait', 'suspects', 'prioritized', 'grouped'])
    for (const id of membersOf(state, key)) yield [id, { state: 'waiting', key }];
  for (const key of ['delayed', 'completed', 'dead'] as const)
    for (const [id, at] of valuesOf(state, key)) {
      const isCancelled = key === 'completed' && Number(at) >= 1e15;
      yield [id, { state: isCancelled ? 'cancelled' : key, key, at: Number(at) % 1e15 }];
    }
  for (const worker of workersThatHold(state)) {
    const key = `active:${worker}`;
    for (const id of membersOf(state, key)) yield [id, { state: 'active', key, worker }];
  }
}
