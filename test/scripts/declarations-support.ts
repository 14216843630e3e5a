import { type DeclareCall, type Declaration, ownedRecord } from '#lib/contract/declaration-verbs.js';
import type { QueueEngine } from '#lib/contract/engine.js';
import { QUEUE, type TestQueue } from './support.js';

/** Anything that has an engine. */
interface Declaring {
  readonly engine: Pick<QueueEngine, 'declarations' | 'schedules'>;
}

export const OWNER = 'app';
export const TTL_MS = 60_000;

/** The process that declares. Its set is named by the ids in it, so the same ids are the same set. */
export function declaration(process: string, ids: readonly string[], owner = OWNER): Declaration {
  return { process, owner, set: `set-${ids.join('-')}`, ttlMs: TTL_MS };
}

/** A call that declares schedules which are nearly due. All of them are new. */
export function newSet(process: string, ids: readonly string[], owner = OWNER): DeclareCall {
  const puts = ids.map((id) => ({
    id,
    revision: 0,
    record: ownedRecord(owner, `{"of":"${id}"}`),
    nextAt: 1,
  }));
  return { ...declaration(process, ids, owner), ids, puts };
}

export function declaring(
  q: Declaring,
  process: string,
  ids: readonly string[],
  more: Partial<DeclareCall> = {},
) {
  return q.engine.declarations.declare(QUEUE, { ...newSet(process, ids, more.owner), ...more });
}

export function renewing(q: Declaring, process: string, ids: readonly string[]) {
  return q.engine.declarations.renew(QUEUE, declaration(process, ids));
}

export function withdrawing(q: Declaring, process: string, ids: readonly string[], owner = OWNER) {
  return q.engine.declarations.withdraw(QUEUE, declaration(process, ids, owner));
}

/** The ids of all schedules there are, sorted. */
export async function scheduleIds(q: Declaring): Promise<string[]> {
  const { schedules } = await q.engine.schedules.list(QUEUE, { offset: 0, limit: 1_000 });
  return schedules.map(({ id }) => id).toSorted();
}

/** Lets the declaration of a process end this many ms from now, or ago. */
export async function endsIn(q: TestQueue, process: string, ms: number): Promise<void> {
  const key = q.key('declarers');
  const found = (await q.zset('declarers')).find((one) => one.startsWith(`${process} `));
  if (found === undefined) throw new Error(`${process} declares nothing`);
  await q.admin.zadd(key, (await q.now()) + ms, found);
}
