import { expect, it } from 'vitest';
import { LETTERED_JOBS, processKeys, type KeyName, type QueueKeys } from '#lib/engine/keys.js';
import type { TestRedis } from '../support/redis.js';
import { readKeys } from '../support/whole-keys.js';
import type { TestQueue } from './support.js';

/** Every key of a test: its kind (the text after the hash tag), its whole value, and when it expires (-1: never). */
export type Dump = Readonly<Record<string, { readonly value: unknown; readonly expiresAt: number }>>;

export async function dump(redis: TestRedis, queue: QueueKeys): Promise<Dump> {
  const tag = queue.fixed.meta.slice(0, -'meta'.length);
  // Written once, with the first add.
  const { queues } = processKeys(redis.prefix);
  const all: Record<string, Dump[string]> = {};
  for (const { key, kind, value, expiresAt } of await readKeys(redis.admin, `*${redis.prefix}*`)) {
    if (key === queues) continue;
    // Entries of a hash, not an object: '__proto__' is a valid id.
    all[key.replace(tag, '')] = { value: { kind, value: inFixedOrder(kind, value) }, expiresAt };
  }
  return all;
}

/** A server may give the members of a set and the fields of a hash in another order after it has only read them. */
function inFixedOrder(kind: string, value: readonly unknown[]): readonly unknown[] {
  if (kind === 'set') return (value as readonly string[]).toSorted();
  if (kind !== 'hash') return value;
  const fields = new Map<unknown, unknown>();
  for (let i = 0; i < value.length; i += 2) fields.set(value[i], value[i + 1]);
  return [...fields].toSorted(([a], [b]) => (String(a) < String(b) ? -1 : 1)).flat();
}

/** Leaves out keys that may change. */
export function without(all: Dump, ...kinds: string[]): Dump {
  return Object.fromEntries(Object.entries(all).filter(([key]) => !kinds.includes(key)));
}

/** Runs `act`, and expects that no key of the test changes. Returns the result of `act`. */
export async function changingNothing<T>(q: TestQueue, act: () => Promise<T>): Promise<T> {
  const before = await q.dump();
  const answer = await act();
  const after = await q.dump();
  // On a slow machine a key may expire meanwhile.
  const isOver = ([key, { expiresAt }]: [string, Dump[string]]) =>
    !(key in after) && expiresAt >= 0 && expiresAt <= Date.now();
  expect(after).toEqual(Object.fromEntries(Object.entries(before).filter((entry) => !isOver(entry))));
  return answer;
}

/** As `changingNothing`, but the call of this lane is remembered from now on. */
export async function rememberingLonger<T>(q: TestQueue, act: () => Promise<T>): Promise<T> {
  const before = await q.dump();
  const answer = await act();
  const after = await q.dump();
  const lane = Object.keys(before).find((key) => key.startsWith('lane:'))!;
  expect(after[lane]!.expiresAt).toBeGreaterThanOrEqual(before[lane]!.expiresAt);
  expect(after).toEqual({ ...before, [lane]: { ...before[lane], expiresAt: after[lane]!.expiresAt } });
  return answer;
}

interface WrongTypes {
  readonly keys: readonly KeyName[];
  /** Sets up a state in which the script would write. Returns the call that runs it. */
  readonly prepare: () => Promise<() => Promise<unknown>>;
  /** Keys whose type does not matter to the call. It succeeds whatever they are. */
  readonly except?: readonly KeyName[];
  /** Whether jobs have slots there. */
  readonly hasSlots?: boolean;
}

/** One test for each declared key: if the key has another type, the call is refused before it writes anything. */
export function itRefusesWrongTypes(
  q: TestQueue,
  { keys, prepare, except = [], hasSlots = false }: WrongTypes,
): void {
  const misuse = async (kind: KeyName) => {
    const call = await prepare();
    const key = q.key(kind);
    await q.admin.del(key);
    // No key but that of the lane is a string.
    if (kind === 'lane') await q.admin.rpush(key, 'not ours');
    else await q.admin.set(key, 'not ours');
    return call;
  };

  // All letters obey the same rules. Lines become ready only where jobs have slots.
  const [, ...others] = [...(LETTERED_JOBS as readonly KeyName[]), ...(hasSlots ? [] : (['ready'] as const))];
  const checked = keys.filter((kind) => !except.includes(kind) && !others.includes(kind));
  it.each(checked)('changes nothing if %s is of another type', async (kind) => {
    const call = await misuse(kind);
    const refusal = { code: 'GODWIT_REDIS_REFUSED', reply: 'WRONGTYPE', applied: 'no' };
    await changingNothing(q, () => expect(call()).rejects.toMatchObject(refusal));
  });

  if (except.length === 0) return;
  it.each(except)('succeeds if %s is of another type', async (kind) => {
    const call = await misuse(kind);
    await call();
    expect(await q.admin.get(q.key(kind))).toBe('not ours');
  });
}
