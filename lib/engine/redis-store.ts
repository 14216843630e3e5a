import { NotRunningError, QueueFormatError, RedisRefusedError } from '../errors.js';
import {
  processKeys,
  QUEUE_FORMAT,
  QueueKeys,
  type KeysOfWorker,
  type ProcessKeys,
  type QueueKeyName,
  type ScriptKeyName,
} from './keys.js';
import type { CommandLink } from './wire/connections.js';
import { inFull, type Arg } from './wire/fixed-args.js';
import type { Link } from './wire/link.js';
import type { ArgTypes, ArgValues, KeyValues, ListValues, Script, Value } from './script.js';
import { isForgotten, isPassing } from '../contract/retry.js';

/**
 * A queue in use is written to the registry again after this time: another process may have obliterated it, or Redis has lost its
 * data. Until then, dashboards and commands do not see the queue.
 */
const KNOWN_MS = 60_000;

/** Keys per step of a scan. */
const SCAN_STEP = 1000;

/** The parts of a script that are needed once its arguments are encoded. */
type Encoded<Reply> = Pick<Script<never, ArgTypes, never, Reply>, 'name' | 'text' | 'reply'>;

/** The same rule as `leased_workers` in the scripts. */
const WORKER_NAME = /^[!-~]+$/;

/** The workers of a queue that have a lease. */
interface LeasedWorkers {
  readonly names: readonly string[];
  /** The argument `workers` of scripts: the names, one per line. */
  readonly workers: string;
  /** The keys of the active sets of these workers. The scripts get them too. */
  readonly active: readonly string[];
}

const NO_WORKERS: LeasedWorkers = { names: [], workers: '', active: [] };

/** Runs scripts and single commands on one Redis, and keeps the time of its clock. */
export class RedisStore {
  private link: CommandLink | undefined;
  private closed = false;
  private readonly keys = new Map<string, QueueKeys>();
  readonly processKeys: ProcessKeys;
  /** Scripts that were sent in full on this connection. */
  private readonly sent = new Set<Encoded<unknown>>();
  /** The time of the store's clock when `performance.now()` was 0. */
  private clockStart = performance.timeOrigin;
  private day = { until: 0, text: '' };
  /** Queues in the registry of the prefix, and when to write them again. */
  private readonly known = new Map<string, number>();
  /** Queues whose format was checked on this connection. */
  private readonly checked = new Set<string>();
  /** The workers that the last call found in each queue. Most calls find the same. */
  private readonly leased = new Map<string, LeasedWorkers>();

  constructor(
    private readonly prefix: string,
    /** How long a connection may be silent while a call waits for its answer. */
    readonly callMs: number,
    /** Called with the `INFO` of each server before it is used. If it throws, the server is refused. */
    private readonly onInfo: (info: string) => void,
    private readonly makeLink: (greet: (link: Link) => Promise<void>) => CommandLink,
    /** The queues whose format is checked on every new connection. */
    private readonly queues: () => readonly string[] = () => [],
  ) {
    this.processKeys = processKeys(prefix);
  }

  /** Created at the first use, because a client from a factory may connect at once. */
  get commands(): CommandLink {
    if (!this.link) {
      if (this.closed) throw new NotRunningError('connect');
      this.link = this.makeLink((link) => this.greet(link));
    }
    return this.link;
  }

  /** Connects. Resolves to false if Redis cannot be reached yet. */
  async open(): Promise<boolean> {
    try {
      await this.command('open', 'ping', []);
    } catch (error) {
      // A server with a full disk, or one that is loading its data, counts as not reachable yet.
      if (isPassing(error)) return false;
      throw error;
    }
    return true;
  }

  async close(): Promise<void> {
    this.closed = true;
    await this.link?.close();
  }

  /** Makes one attempt. A script is sent in full if the server may not know it, and once more if the server has forgotten it. */
  run<K extends ScriptKeyName, A extends ArgTypes, L extends string, Reply>(
    script: Script<K, A, L, Reply>,
    keys: KeyValues<K>,
    args: ArgValues<A>,
    lists = {} as ListValues<L>,
    more?: readonly string[],
  ): Promise<Reply> {
    return this.call(script, script.encode(keys, args, lists, more), this.callMs);
  }

  /** Like `run`, with the arguments already encoded for `EVALSHA`. */
  call<Reply>(script: Encoded<Reply>, args: Arg[], silentMs: number, until = Infinity): Promise<Reply> {
    const { link } = this;
    if (!link) return this.callFirst(script, args, silentMs, until);
    // A new server would have to ask for the script. Later calls would then overtake this one, and jobs would be stored in the
    // wrong order.
    if (!this.sent.has(script)) return this.callInFull(link, script, args, silentMs, until);
    return link.send(script.name, 'evalsha', args, silentMs, until).then(script.reply, (error: unknown) => {
      if (!isForgotten(error)) throw error;
      return this.callInFull(link, script, args, silentMs, until);
    });
  }

  private callInFull<Reply>(
    link: CommandLink,
    script: Encoded<Reply>,
    args: Arg[],
    silentMs: number,
    until: number,
  ): Promise<Reply> {
    this.sent.add(script);
    return link.send(script.name, 'eval', inFull(script.text, args), silentMs, until).then(script.reply);
  }

  /** Async, because creating the connection may throw, and `call` must not. */
  private async callFirst<Reply>(
    script: Encoded<Reply>,
    args: Arg[],
    silentMs: number,
    until: number,
  ): Promise<Reply> {
    this.commands.open();
    return this.call(script, args, silentMs, until);
  }

  /** @param near a key, to choose the server for a command without keys. */
  async command(verb: string, name: string, args: Value[], near?: string): Promise<any> {
    return this.commands.send(verb, name, args, this.callMs, Infinity, near);
  }

  /**
   * Calls `ask` with the workers of a queue, because scripts must declare their active sets. A script that finds other workers
   * answers `again`. Then they are read again.
   *
   * @param tryLast tries with the workers of the last such call before they are read.
   */
  async withWorkers<T>(
    queue: string,
    ask: (leased: LeasedWorkers, keys: QueueKeys) => Promise<T | 'again'>,
    tryLast = false,
  ): Promise<T> {
    let leased = tryLast ? (this.leased.get(queue) ?? NO_WORKERS) : await this.readWorkers(queue);
    for (;;) {
      const answer = await ask(leased, this.keysOf(queue));
      if (answer !== 'again') return answer as T;
      leased = await this.readWorkers(queue);
      if (leased.names.length === 0) this.leased.delete(queue);
      else this.leased.set(queue, leased);
    }
  }

  /** The workers of a queue that have a lease. */
  async readWorkers(queue: string): Promise<LeasedWorkers> {
    const keys = this.keysOf(queue);
    const found = (await this.command('workers', 'zrange', [keys.fixed.workers, 0, -1])) as string[];
    const names = found.filter((name) => WORKER_NAME.test(name));
    return { names, workers: names.join('\n'), active: names.map((worker) => keys.active(worker)) };
  }

  /** Workers with an active set, found by scanning all keys in small steps: a worker without a lease is listed nowhere else. */
  async holders(queue: string): Promise<string[]> {
    const keys = this.keysOf(queue);
    const found = new Set<string>();
    let cursor = '0';
    do {
      const args = [cursor, 'MATCH', keys.everyActive, 'COUNT', SCAN_STEP];
      const [next, page] = (await this.command('audit', 'scan', args, keys.fixed.jobs)) as [string, string[]];
      for (const key of page) if (!key.includes('\n')) found.add(keys.workerOf(key));
      cursor = next;
    } while (cursor !== '0');
    return [...found];
  }

  /** Whether this connection has written the queue to the registry of the prefix within the last minute. */
  isKnown(queue: string, now: number): boolean {
    return (this.known.get(queue) ?? 0) > now;
  }

  /**
   * Writes the queues to the registry of the prefix, unless they are known. Nothing waits for it: if Redis refuses, the queues are
   * only missing from a list.
   */
  makeKnown(queues: readonly string[]): void {
    const now = performance.now();
    const unknown = queues.filter((queue) => !this.isKnown(queue, now));
    if (unknown.length === 0) return;
    for (const queue of unknown) this.known.set(queue, now + KNOWN_MS);
    const seenAt = Math.floor(this.now());
    const members = unknown.flatMap((queue) => [seenAt, queue]);
    void this.command('queues', 'zadd', [this.processKeys.queues, ...members]).catch(() => undefined);
  }

  /** The names in the registry of the prefix. */
  async knownQueues(): Promise<string[]> {
    const found = new Set<string>();
    let cursor = '0';
    do {
      const args = [this.processKeys.queues, cursor, 'COUNT', SCAN_STEP];
      const [next, page] = (await this.command('queues', 'zscan', args)) as [string, string[]];
      for (let i = 0; i < page.length; i += 2) found.add(page[i]!);
      cursor = next;
    } while (cursor !== '0');
    return [...found];
  }

  /** Removes the queue from the registry of the prefix. A refusal is ignored, as in `makeKnown`. */
  forgetQueue(queue: string): Promise<void> {
    this.known.delete(queue);
    return this.removeKnown(queue);
  }

  /** Rejects if the server of the registry does not answer. */
  touchRegistry(): Promise<void> {
    // No queue has this name.
    return this.removeKnown('');
  }

  private async removeKnown(queue: string): Promise<void> {
    try {
      await this.command('obliterate', 'zrem', [this.processKeys.queues, queue]);
    } catch (error) {
      if (!(error instanceof RedisRefusedError)) throw error;
    }
  }

  keysOf(queue: string): QueueKeys {
    let keys = this.keys.get(queue);
    if (!keys) this.keys.set(queue, (keys = new QueueKeys(this.prefix, queue)));
    return keys;
  }

  /** These keys of each of the queues, one queue after the other. */
  keysOfQueues(queues: readonly string[], names: readonly QueueKeyName[]): string[] {
    return queues.flatMap((queue) => names.map((name) => this.keysOf(queue).fixed[name]));
  }

  /** The keys of a queue, with those of a worker and of today. Returns the same object for every call. */
  keysOfWorker(queue: string, worker: string): KeysOfWorker {
    return this.keysOf(queue).ofWorker(worker, this.today());
  }

  now(): number {
    return this.clockStart + performance.now();
  }

  setClock(serverNow: number): void {
    this.clockStart = serverNow - performance.now();
  }

  /** The current day by the server's clock, for the counters. */
  today(): string {
    const now = this.now();
    if (now >= this.day.until) {
      this.day = {
        until: new Date(now).setUTCHours(24, 0, 0, 0),
        text: new Date(now).toISOString().slice(0, 10),
      };
    }
    return this.day.text;
  }

  private async greet(link: Link): Promise<void> {
    this.sent.clear();
    this.known.clear();
    this.checked.clear();
    const { callMs } = this;
    const [info, time] = await Promise.all([
      link.write('open', 'info', [], callMs) as Promise<string>,
      link.write('open', 'time', [], callMs) as Promise<[string, string]>,
    ]);
    this.onInfo(info);
    this.setClock(Number(time[0]) * 1000 + Number(time[1]) / 1000);
    const send = (name: string, args: Value[]) => link.write('open', name, args, callMs);
    await Promise.all(this.queues().map((queue) => this.checkFormat(queue, send)));
  }

  /**
   * Checks the format of a queue that was not known when the connection opened. Null if that is not needed: it was checked, or a new
   * connection checks it.
   *
   * @throws {QueueFormatError}
   */
  checkQueue(queue: string): Promise<void> | null {
    if (!this.link?.isUp || this.checked.has(queue) || !this.queues().includes(queue)) return null;
    return this.checkFormat(queue, (name, args) => this.command('open', name, args));
  }

  /**
   * Reads the format number of a queue, and writes it if the queue has none. If the server refuses, because another node has the queue or
   * it is read-only, the first call reports it.
   *
   * @throws {QueueFormatError}
   */
  private async checkFormat(
    queue: string,
    send: (name: string, args: Value[]) => Promise<unknown>,
  ): Promise<void> {
    const { meta } = this.keysOf(queue).fixed;
    const write = send('hsetnx', [meta, 'format', QUEUE_FORMAT]);
    const read = send('hget', [meta, 'format']) as Promise<string | null>;
    const [, found] = await Promise.allSettled([write, read]);
    if (found.status === 'rejected' && !(found.reason instanceof RedisRefusedError)) throw found.reason;
    const format = found.status === 'fulfilled' ? Number(found.value) : 0;
    if (format > QUEUE_FORMAT) throw new QueueFormatError(queue, format, QUEUE_FORMAT);
    this.checked.add(queue);
  }
}
