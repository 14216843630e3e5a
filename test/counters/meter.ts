import { createHook } from 'node:async_hooks';
import { setTimeout as pause } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import { until } from '../support/wait.js';

/** The cost of some work, in counters without time. */
export interface Spent {
  /** Calls by the name of the command, including those in scripts. */
  readonly calls: ReadonlyMap<string, number>;
  readonly commands: number;
  readonly scriptCalls: number;
  /** Bytes sent to Redis. */
  readonly bytesSent: number;
  /** Bytes received from Redis. */
  readonly bytesReceived: number;
  /** Promises made in this process. */
  readonly promises: number;
  /** Timers and immediates set in this process. */
  readonly timers: number;
}

interface Reading {
  readonly calls: ReadonlyMap<string, number>;
  readonly bytesIn: number;
  readonly bytesOut: number;
}

/** Commands of the meter itself. The library sends none of them while it is measured. */
const OWN = new Set(['info', 'keys', 'client|list', 'client|unblock', 'memory|usage']);
/** Names of Node. Work of sockets is left out: the machine decides how a reply is cut into packets. */
const PROMISES = new Set(['PROMISE', 'Microtask']);
const TIMERS = new Set(['Timeout', 'Immediate']);
const SCRIPTS = ['eval', 'evalsha', 'fcall'];
const PATIENT_MS = 15_000;

/** Reads the counters of a server that only the library uses, through a client of its own. */
export class Meter {
  constructor(private readonly admin: Redis) {}

  /** The cost of `work`. Node is counted until `work` resolves, the server until `settled` resolves too. */
  async spend(
    work: () => Promise<unknown>,
    settled: () => Promise<unknown> = async () => {},
  ): Promise<Spent> {
    const before = await this.read();
    const made = countDeferred();
    await work();
    const { promises, timers } = made();
    await settled();
    const after = await this.read();
    const calls = new Map<string, number>();
    for (const [name, count] of after.calls) {
      const more = count - (before.calls.get(name) ?? 0);
      if (more > 0) calls.set(name, more);
    }
    return {
      calls,
      commands: sum(calls.values()),
      scriptCalls: sum(SCRIPTS.map((name) => calls.get(name) ?? 0)),
      bytesSent: after.bytesIn - before.bytesIn,
      bytesReceived: after.bytesOut - before.bytesOut,
      promises,
      timers,
    };
  }

  /** Until the library waits only for the bell, no job waits or runs, and `also` holds for the keys. */
  async atRest(also: (keys: readonly string[]) => boolean = () => true): Promise<void> {
    let last = '';
    let seen = '';
    await until(
      async () => {
        const blocked = (await this.info('clients')).get('blocked_clients');
        const keys = await this.keys();
        const before = last;
        last = JSON.stringify([...(await this.read()).calls]);
        seen = `${blocked} blocked, keys ${keys.join(' ')}`;
        if (blocked !== '1' || keys.some((key) => /:(wait|prioritized|active:.*)$/.test(key)) || !also(keys))
          return false;
        // The last answer of Redis may cause one more call.
        await pause(2);
        return last === before;
      },
      { timeout: PATIENT_MS, what: () => `the library is at rest, got ${seen}` },
    );
  }

  /** Until a command has been called this many times more. */
  async calls(command: string, count: number): Promise<void> {
    const called = async () => (await this.read()).calls.get(command) ?? 0;
    const from = await called();
    await until(async () => (await called()) >= from + count, {
      timeout: PATIENT_MS,
      what: `${count} ${command}`,
    });
  }

  keys(): Promise<string[]> {
    return this.admin.keys('*');
  }

  /**
   * Bytes of all keys with their data structures, without what workers keep of their last exchanges: that belongs to
   * no job and varies.
   */
  async bytesOfKeys(): Promise<number> {
    const keys = (await this.keys()).filter((key) => !key.includes(':worker:'));
    const sizes = keys.map((key) => this.admin.call('MEMORY', 'USAGE', key, 'SAMPLES', 0) as Promise<number>);
    return sum(await Promise.all(sizes));
  }

  /** Ends the block at the bell as its own time limit would. Resolves once the library blocks again. */
  async endBlock(): Promise<void> {
    const list = String(await this.admin.client('LIST')).split('\n');
    const blocked = list.find((line) => / flags=[A-Za-z]*b/.test(line));
    await this.admin.client('UNBLOCK', /\bid=(\d+)/.exec(blocked!)![1]!, 'TIMEOUT');
    await this.atRest();
  }

  async connectionsOpened(): Promise<number> {
    return Number((await this.info('stats')).get('total_connections_received'));
  }

  /** `redis 7.0`. The memory of a key depends on it. */
  async server(): Promise<string> {
    const info = await this.info('server');
    const name = info.get('server_name') ?? 'redis';
    return `${name} ${/^\d+\.\d+/.exec(info.get(`${name}_version`)!)![0]}`;
  }

  private async read(): Promise<Reading> {
    const { stream } = this.admin as unknown as { stream: { bytesRead: number; bytesWritten: number } };
    // The answer counts what was written before it.
    const { bytesRead } = stream;
    const info = await this.info('stats', 'commandstats');
    const calls = new Map<string, number>();
    for (const [name, value] of info) {
      const [, command] = /^cmdstat_(.+)$/.exec(name) ?? [];
      if (command && !OWN.has(command)) calls.set(command, Number(/^calls=(\d+)/.exec(value)![1]));
    }
    return {
      calls,
      bytesIn: Number(info.get('total_net_input_bytes')) - stream.bytesWritten,
      bytesOut: Number(info.get('total_net_output_bytes')) - bytesRead,
    };
  }

  private async info(...sections: string[]): Promise<ReadonlyMap<string, string>> {
    const lines = String(await this.admin.call('INFO', ...sections)).split('\r\n');
    return new Map(lines.map((line) => [line.split(':', 1)[0]!, line.slice(line.indexOf(':') + 1)]));
  }
}

function countDeferred(): () => Pick<Spent, 'promises' | 'timers'> {
  let promises = 0;
  let timers = 0;
  const init = (_: number, type: string) => {
    const isPromise = PROMISES.has(type);
    if ((!isPromise && !TIMERS.has(type)) || isOfRunner()) return;
    if (isPromise) promises += 1;
    else timers += 1;
  };
  const hook = createHook({ init }).enable();
  return () => {
    hook.disable();
    return { promises, timers };
  };
}

/** Whether the running code is Vitest's. It reports from this process now and then, more often on a busy machine. */
function isOfRunner(): boolean {
  // oxlint-disable-next-line typescript/unbound-method -- it is only set back
  const { prepareStackTrace } = Error;
  Error.prepareStackTrace = (_, sites) => sites.map((site) => site.getFileName() ?? '');
  const files = new Error('the stack').stack as unknown as string[];
  Error.prepareStackTrace = prepareStackTrace;
  const from = files.find((file) => file !== '' && !file.startsWith('node:') && !file.endsWith('/meter.ts'));
  return /\/node_modules\/@?vitest\//.test(from ?? '');
}

function sum(numbers: Iterable<number>): number {
  let total = 0;
  for (const number of numbers) total += number;
  return total;
}
