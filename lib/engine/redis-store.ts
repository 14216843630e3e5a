import { NotRunningError, RedisRefusedError, RedisUnavailableError } from '../errors.js';
import { QueueKeys, type KeyName } from './keys.js';
import type { CommandLink } from './connections.js';
import type { Link } from './link.js';
import type { ArgTypes, ArgValues, KeyValues, ListValues, Script, Value } from './script.js';
import { checkServer } from './server-check.js';

/** Running scripts and single commands against one Redis, and the clock that Redis keeps. */
export class RedisStore {
  private link: CommandLink | undefined;
  private closed = false;
  private readonly keys = new Map<string, QueueKeys>();
  private clockOffset = 0;
  private day = { until: 0, text: '' };
  private readonly warnings = new Set<string>();

  constructor(
    private readonly prefix: string,
    /** How long one call may take before its socket counts as silent. */
    readonly callMs: number,
    private readonly makeLink: (greet: (link: Link) => Promise<void>) => CommandLink,
  ) {}

  /** Made at the first use: what a factory makes may connect at once. */
  get commands(): CommandLink {
    if (!this.link) {
      if (this.closed) throw new NotRunningError('connect');
      this.link = this.makeLink((link) => this.greet(link));
    }
    return this.link;
  }

  async open(): Promise<readonly string[] | null> {
    try {
      await this.command('open', 'ping', []);
    } catch (error) {
      if (!(error instanceof RedisUnavailableError)) throw error;
      return null;
    }
    return [...this.warnings];
  }

  async close(): Promise<void> {
    this.closed = true;
    await this.link?.close();
  }

  /** One attempt. A script the server has forgotten is sent in full, once. */
  async run<K extends KeyName, A extends ArgTypes, L extends string, Reply>(
    script: Script<K, A, L, Reply>,
    keys: KeyValues<K>,
    args: ArgValues<A>,
    lists = {} as ListValues<L>,
    more?: readonly string[],
    withinMs = this.callMs,
  ): Promise<Reply> {
    const values = script.encode(keys, args, lists, more);
    const deadline = performance.now() + withinMs;
    let raw: unknown;
    try {
      raw = await this.commands.send(script.name, 'evalsha', [script.sha, ...values], withinMs);
    } catch (error) {
      if (!(error instanceof RedisRefusedError && error.reply === 'NOSCRIPT')) throw error;
      const leftMs = Math.max(1, deadline - performance.now());
      raw = await this.commands.send(script.name, 'eval', [script.text, ...values], leftMs);
    }
    return script.reply(raw);
  }

  async command(verb: string, name: string, args: Value[]): Promise<any> {
    return this.commands.send(verb, name, args, this.callMs);
  }

  /** Active sets must be declared, so the workers are asked first; a script that sees others says so. */
  async withWorkers<T>(
    queue: string,
    ask: (workers: readonly string[], keys: QueueKeys) => Promise<T | 'again'>,
  ): Promise<T> {
    const keys = this.keysOf(queue);
    for (;;) {
      const workers = (await this.command('workers', 'zrange', [keys.fixed.workers, 0, -1])) as string[];
      const answer = await ask(workers, keys);
      if (answer !== 'again') return answer as T;
    }
  }

  keysOf(queue: string): QueueKeys {
    let keys = this.keys.get(queue);
    if (!keys) this.keys.set(queue, (keys = new QueueKeys(this.prefix, queue)));
    return keys;
  }

  now(): number {
    return performance.timeOrigin + performance.now() + this.clockOffset;
  }

  setClock(serverNow: number): void {
    this.clockOffset = serverNow - performance.timeOrigin - performance.now();
  }

  /** The day of the server's clock, for the counters. */
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
    const deadline = performance.now() + this.callMs;
    const [info, time] = await Promise.all([
      link.write('open', 'info', [], deadline) as Promise<string>,
      link.write('open', 'time', [], deadline) as Promise<[string, string]>,
    ]);
    for (const warning of checkServer(info)) this.warnings.add(warning);
    this.setClock(Number(time[0]) * 1000 + Number(time[1]) / 1000);
  }
}
