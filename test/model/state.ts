import assert from 'node:assert/strict';
import type { Redis } from 'ioredis';
import type { RawEvent } from '#lib/contract/engine.js';
import { readEntry } from '#lib/engine/codec/event-codec.js';
import { readKeys } from '../support/whole-keys.js';
import { sortedJson } from './sorted-json.js';
import { LETTERS, letterOf } from '#lib/job/job-id.js';

/**
 * All keys of a queue, by their names after the hash tag, in a canonical form: equal states are equal as values.
 * `until` is the time to live that a key was given, rounded up to ten seconds.
 */
export type State = Readonly<Record<string, KeyValue>>;

export interface KeyValue {
  readonly hash?: Pairs;
  readonly zset?: Pairs;
  readonly list?: readonly string[];
  readonly set?: readonly string[];
  readonly string?: readonly string[];
  readonly until?: number;
}
type Pairs = readonly (readonly [string, string])[];

export interface Snapshot {
  readonly state: State;
  /** Events after the given number. */
  readonly events: readonly (RawEvent & { readonly at: number })[];
}

/** Ids of a list, set, sorted set or hash. */
export function membersOf(state: State, key: string): readonly string[] {
  const { hash, zset, list, set } = state[key] ?? {};
  return list ?? set ?? (zset ?? hash ?? []).map(([id]) => id);
}

/** Values of a hash, or scores of a sorted set, by id. */
export function valuesOf(state: State, key: string): ReadonlyMap<string, string> {
  const { hash, zset } = state[key] ?? {};
  return new Map(zset ?? hash ?? []);
}

export function workersThatHold(state: State): string[] {
  const prefix = 'active:';
  return Object.keys(state).flatMap((key) => (key.startsWith(prefix) ? [key.slice(prefix.length)] : []));
}

export async function readState(admin: Redis, tag: string, after: number): Promise<Snapshot> {
  const state: Record<string, KeyValue> = {};
  const events: Snapshot['events'][number][] = [];
  for (const { key, kind, ttl, value } of await readKeys(admin, '*', after)) {
    const name = key.startsWith(tag) ? key.slice(tag.length) : key;
    // The list of queues belongs to no queue.
    if (name === 'clock' || name.endsWith('}:clock') || name.endsWith('}:queues')) continue;
    if (kind === 'stream') {
      for (const [id, fields] of value as readonly [string, string[]][]) {
        const batch = readEntry('q', id, fields);
        events.push(...batch.events.map((event) => ({ ...event, at: batch.at })));
      }
      continue;
    }
    state[name] = {
      ...shaped(kind, value as readonly string[]),
      ...(ttl >= 0 ? { until: roundUp(ttl) } : {}),
    };
  }
  return { state: withRules(withOneDay(withWholeLogs(withAllBodies(state)))), events };
}

/** Rules as one text, independent of the order of their fields. */
function withRules(state: State): State {
  const rules = Object.entries(state)
    .filter(([key]) => key === 'limits' || key.endsWith('}:limits'))
    .map(([key, { hash }]) => {
      const sorted = hash!.map(([of, json]) => [of, sortedJson(JSON.parse(json))] as const);
      return [key, { hash: sorted }] as const;
    });
  return { ...state, ...Object.fromEntries(rules) };
}

/** The bodies of all hashes as one hash. Each must be in the hash of its letter. */
function withAllBodies({ jobs, ...state }: State): State {
  const bodies = [...(jobs?.hash ?? [])];
  for (const [id] of bodies) assert.equal(letterOf(id), '', `${id} is in jobs`);
  for (const letter of LETTERS) {
    const { [`jobs:${letter}`]: lettered, ...others } = state;
    for (const [id] of lettered?.hash ?? []) assert.equal(letterOf(id), letter);
    bodies.push(...(lettered?.hash ?? []));
    state = others;
  }
  return bodies.length === 0 ? state : { ...state, jobs: { hash: bodies.toSorted(byFirst) } };
}

/** A log as one text, as if its lines were in one field. */
function withWholeLogs(state: State): State {
  const fields = valuesOf(state, 'logs');
  const logs: [string, string][] = [];
  for (const [id, head] of fields) {
    if (id.includes('\n')) {
      assert(fields.has(id.slice(0, id.indexOf('\n'))), `${JSON.stringify(id)} is a line of no log`);
      continue;
    }
    const written = Number(head);
    const lines = Array.from({ length: Math.min(written, 100) }, (_, i) =>
      fields.get(`${id}\n${(Math.max(0, written - 100) + i) % 100}`),
    );
    logs.push([id, lines.join('\n')]);
  }
  return logs.length === 0 ? state : { ...state, logs: { hash: logs.toSorted(byFirst) } };
}

function roundUp(ms: number): number {
  return Math.ceil(ms / 10_000) * 10_000;
}

function shaped(kind: string, value: readonly string[]): KeyValue {
  switch (kind) {
    case 'hash':
      return { hash: pairs(value).toSorted(byFirst) };
    case 'zset':
      return { zset: pairs(value).map(([member, score]) => [member, String(Number(score))]) };
    case 'set':
      return { set: value.toSorted() };
    default:
      return { [kind]: value };
  }
}

function pairs(flat: readonly string[]): [string, string][] {
  return Array.from({ length: flat.length / 2 }, (_, i) => [flat[2 * i]!, flat[2 * i + 1]!]);
}

export function byFirst(a: readonly [string, ...unknown[]], b: readonly [string, ...unknown[]]): number {
  return a[0] < b[0] ? -1 : a[0] > b[0] ? 1 : 0;
}

/** Counters of all days as one, without the number of names. */
function withOneDay(state: State): State {
  const sums = new Map<string, number>();
  const out: Record<string, KeyValue> = {};
  for (const key of Object.keys(state).toSorted()) {
    if (key.startsWith('stats:')) {
      for (const [field, count] of valuesOf(state, key))
        if (field !== 'names') sums.set(field, (sums.get(field) ?? 0) + Number(count));
    } else out[key] = state[key]!;
  }
  if (sums.size > 0) out['stats'] = { hash: [...sums].toSorted(byFirst).map(([f, n]) => [f, String(n)]) };
  return out;
}
