import { decodeOrders, decodeProcess } from './codec/process-codec.js';
import { encodeRegistration, LossCheck, toShown } from './process-renewal.js';
import {
  notReplaced,
  type LeadAnswer,
  type LeadCall,
  type ProcessList,
  type ProcessOrder,
  type ProcessRecord,
  type ProcessVerbs,
  type Registration,
} from '../contract/process-verbs.js';
import type { RedisStore } from './redis-store.js';
import { mapOf } from './script.js';
import {
  type ActionEntry,
  type ProcessEntry,
  actions,
  bulkActs,
  lead,
  listWorkers,
  order,
  putBulkAct,
  recordAction,
  register,
  unregister,
} from './scripts/processes.js';
import { KEEP_BULK_ACTS_MS, type BulkActChange, type BulkActVerbs } from '../contract/bulk-act-verbs.js';
import { isQueueName } from '../job/job-id.js';
import { RULES } from '../job/rules.js';
import type {
  ActionsAnswer,
  ActionsCall,
  ActionVerbs,
  NewAction,
  StoredAction,
} from '../contract/actions.js';

/** Half a megabyte if the records are of the largest size. Redis reads it in a few ms. */
const PAGE = 10;
/** The listing ends here if other programs fill the key. */
const MAX_ENTRIES = 10_000;
/** Orders to one process that are kept while it does not answer: some hundreds. */
const MAX_ORDER_BYTES = 65_536;
/** Firing alerts are forgotten after this time without a leader. */
const KEEP_STATE_MS = 604_800_000;

/** The worker processes of a prefix on Redis. */
export class RedisProcesses implements ProcessVerbs {
  server: string | null = null;
  private readonly loss = new LossCheck();

  constructor(private readonly store: RedisStore) {}

  async register(record: ProcessRecord, leaseMs: number): Promise<Registration> {
    const args = encodeRegistration(this.store.processKeys, toShown(record), leaseMs);
    const { kind, orders } = await this.store.call(register, args, this.store.callMs);
    return { orders: decodeOrders(orders), hasLostData: this.loss.hasLostData(record.id, kind) };
  }

  order(process: string, { id, ...what }: ProcessOrder): Promise<boolean> {
    const args = { process, id, order: JSON.stringify(what), maxBytes: MAX_ORDER_BYTES };
    return this.store.run(order, this.store.processKeys, args);
  }

  async unregister(process: string): Promise<void> {
    await this.store.run(unregister, this.store.processKeys, { process });
  }

  async list(): Promise<ProcessList> {
    const records: ProcessRecord[] = [];
    const silent: ProcessList['silent'][number][] = [];
    const unreadable: ProcessList['unreadable'][number][] = [];
    for (const { process, info, endsInMs } of await this.entries()) {
      if (endsInMs <= -RULES.rememberMs) continue;
      const record = decodeProcess(info);
      if (record && endsInMs <= 0) silent.push({ record, silentMs: 0 - endsInMs });
      else if (record) records.push(record);
      else if (endsInMs > 0) unreadable.push({ process, why: info.slice(0, 200) });
    }
    return { records, silent: notReplaced(silent, records), unreadable };
  }

  async ofWorker(worker: string): Promise<ProcessRecord | null> {
    for (const { info } of await this.entries()) {
      if (!info.includes(worker)) continue;
      const record = decodeProcess(info);
      if (record?.pools.some(({ workers }) => workers.includes(worker))) return record;
    }
    return null;
  }

  async worksOn(queues: readonly string[]): Promise<void> {
    this.store.makeKnown(queues);
  }

  async queues(): Promise<readonly string[]> {
    // Other programs may write to this key too.
    return (await this.store.knownQueues()).filter(isQueueName);
  }

  lead(call: LeadCall): Promise<LeadAnswer> {
    return this.store.run(lead, this.store.processKeys, { ...call, keepMs: KEEP_STATE_MS });
  }

  private async entries(): Promise<ProcessEntry[]> {
    const keys = this.store.processKeys;
    // SCAN may return an entry twice.
    const found = new Map<string, ProcessEntry>();
    let cursor = '0';
    do {
      const page = await this.store.run(listWorkers, keys, { cursor, count: PAGE });
      for (const entry of page.entries) found.set(entry.process, entry);
      cursor = page.cursor;
    } while (cursor !== '0' && found.size < MAX_ENTRIES);
    return [...found.values()];
  }
}

/** Entries that one script examines, so that it stays short. */
const EXAMINED = 500;

/** The record of what people did, on Redis. */
export class RedisActions implements ActionVerbs {
  constructor(private readonly store: RedisStore) {}

  async record({ queue, count, ...action }: NewAction): Promise<void> {
    const args = { ...action, queue: queue ?? '', count: count === null ? '' : String(count) };
    await this.store.run(recordAction, this.store.processKeys, args);
  }

  async list({ before, limit, queue = '', actor = '' }: ActionsCall): Promise<ActionsAnswer> {
    const found: StoredAction[] = [];
    let next = before ?? '';
    do {
      const args = { before: next, actor, queue, limit: limit - found.length, most: EXAMINED };
      const page = await this.store.run(actions, this.store.processKeys, args);
      found.push(...page.entries.map(decodeAction).filter((one) => one !== null));
      ({ next } = page);
    } while (next !== '' && found.length < limit);
    return { actions: found, next: next === '' ? null : next };
  }
}

/** The records of acts on many jobs, on Redis. */
export class RedisBulkActs implements BulkActVerbs {
  constructor(private readonly store: RedisStore) {}

  put({ id, before, after }: BulkActChange): Promise<boolean> {
    const args = { id, before, after, keepMs: KEEP_BULK_ACTS_MS };
    return this.store.run(putBulkAct, this.store.processKeys, args);
  }

  async list(): Promise<ReadonlyMap<string, string>> {
    return mapOf(await this.store.run(bulkActs, this.store.processKeys, {}));
  }
}

/** Null for an entry that another program wrote. */
function decodeAction([id, fields]: ActionEntry): StoredAction | null {
  const read = mapOf(fields);
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
