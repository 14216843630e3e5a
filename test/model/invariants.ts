import type { State } from './state.js';

type Fields = readonly (readonly [string, string])[];

/**
 * The rules that hold whatever happens, as sentences where one is broken. Written apart from the auditor of the library,
 * and from the model, so that the same mistake would have to be made twice.
 */
export function brokenRules(state: State, now: number): string[] {
  const of = (name: string) =>
    (state[name] ?? {}) as { hash?: Fields; zset?: Fields; list?: string[]; set?: string[] };
  const keys = (name: string) => (of(name).hash ?? of(name).zset ?? []).map(([id]) => id);
  const faults: string[] = [];
  const rule = (holds: boolean, text: string) => {
    if (!holds) faults.push(text);
  };

  const places = new Map<string, string[]>();
  const put = (place: string, ids: readonly string[]) => {
    for (const id of ids) places.set(id, [...(places.get(id) ?? []), place]);
  };
  for (const line of ['wait', 'suspects']) put(line, of(line).list ?? []);
  for (const zset of ['prioritized', 'delayed', 'dead', 'completed']) put(zset, keys(zset));
  const leases = new Map(of('workers').zset?.map(([worker, end]) => [worker, Number(end)]));
  for (const key of Object.keys(state).filter((name) => name.startsWith('active:'))) {
    put(key, of(key).set ?? []);
    const worker = key.slice('active:'.length);
    const lease = leases.get(worker);
    rule(lease !== undefined, `${worker} holds jobs and has no lease`);
    const isKnown = keys(`worker:${worker}`).includes('seq');
    rule(isKnown || lease! <= now, `${worker} holds jobs under a lease and is not known`);
  }

  const bodies = new Set(keys('jobs'));
  for (const id of bodies) rule(places.has(id), `${id} has a body and is nowhere`);
  for (const [id, at] of places) {
    rule(bodies.has(id), `${id} is in ${at.join()} and has no body`);
    rule(at.length === 1, `${id} is in ${at.join()}`);
  }
  for (const beside of ['attempts', 'stalls', 'failures', 'results', 'progress', 'logs', 'priorities']) {
    for (const id of keys(beside)) rule(bodies.has(id), `${id} is gone and has ${beside}`);
  }
  for (const id of keys('results'))
    rule(places.get(id)?.[0] === 'completed', `${id} has a result and has not completed`);
  for (const id of keys('completed'))
    rule(keys('results').includes(id), `${id} has completed without a record of it`);
  for (const id of keys('priorities'))
    rule(places.get(id)?.[0] === 'delayed', `${id} has a priority put by and is not delayed`);
  for (const id of keys('toCancel'))
    rule(places.get(id)?.[0]?.startsWith('active:') === true, `${id} was signalled and is not active`);
  for (const line of ['wait', 'suspects']) {
    const ids = of(line).list ?? [];
    rule(new Set(ids).size === ids.length, `${line} holds an id twice`);
  }
  const known = /^(active:|worker:|lane:)?[\w.-]*$/;
  for (const key of Object.keys(state)) rule(known.test(key), `${key} is no key of ours`);
  return faults;
}
