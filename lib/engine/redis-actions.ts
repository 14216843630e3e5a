import type {
  ActionsAnswer,
  ActionsCall,
  ActionVerbs,
  NewAction,
  StoredAction,
} from '../contract/action-verbs.js';
import { processKeys } from './keys.js';
import type { RedisStore } from './redis-store.js';
import { actions, type ActionEntry } from './scripts/actions.js';
import { recordAction } from './scripts/record-action.js';

/** Entries that one script examines, so that it stays short. */
const EXAMINED = 500;

/** The record of what people did, on Redis. */
export class RedisActions implements ActionVerbs {
  constructor(
    private readonly prefix: string,
    private readonly store: RedisStore,
  ) {}

  async record({ queue, count, ...action }: NewAction): Promise<void> {
    const args = { ...action, queue: queue ?? '', count: count === null ? '' : String(count) };
    await this.store.run(recordAction, processKeys(this.prefix), args);
  }

  async list({ before, limit, queue = '', actor = '' }: ActionsCall): Promise<ActionsAnswer> {
    const found: StoredAction[] = [];
    let next = before ?? '';
    do {
      const args = { before: next, actor, queue, limit: limit - found.length, most: EXAMINED };
      const page = await this.store.run(actions, processKeys(this.prefix), args);
      found.push(...page.entries.map(decodeAction).filter((one) => one !== null));
      ({ next } = page);
    } while (next !== '' && found.length < limit);
    return { actions: found, next: next === '' ? null : next };
  }
}

/** Null for an entry that another program wrote. */
function decodeAction([id, fields]: ActionEntry): StoredAction | null {
  const read = new Map<string, string>();
  for (let i = 0; i < fields.length; i += 2) read.set(fields[i]!, fields[i + 1]!);
  const actor = read.get('actor');
  const action = read.get('action');
  const result = read.get('result');
  if (actor === undefined || action === undefined || result === undefined) return null;
  const count = Number(read.get('count') || NaN);
  return {
    id,
    at: Number(id.slice(0, id.indexOf('-'))),
    actor,
    action,
    queue: read.get('queue') || null,
    target: read.get('target') ?? '',
    count: Number.isFinite(count) ? count : null,
    result,
  };
}
