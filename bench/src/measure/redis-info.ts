import type { Redis } from 'ioredis';

/** The cost for the server since an earlier moment, from the counters of INFO. */
export interface RedisCost {
  /** User and system time of the whole server process, in microseconds. */
  readonly cpuUs: number;
  /** Every command executed, those inside scripts included. */
  readonly commands: number;
  readonly scriptCalls: number;
}

/** Starts counting; the answer stops and says what was spent between. */
export async function meterRedis(control: Redis): Promise<() => Promise<RedisCost>> {
  const before = await read(control);
  return async () => {
    const after = await read(control);
    return {
      cpuUs: after.cpuUs - before.cpuUs,
      // The reading itself is one command.
      commands: after.commands - before.commands - 1,
      scriptCalls: after.scriptCalls - before.scriptCalls,
    };
  };
}

export async function usedMemory(control: Redis): Promise<number> {
  return Number(parseInfo(await control.info('memory')).get('used_memory'));
}

/** `INFO` as name → value. */
export function parseInfo(text: string): Map<string, string> {
  const fields = new Map<string, string>();
  for (const line of text.split('\r\n')) {
    const colon = line.indexOf(':');
    if (colon > 0) fields.set(line.slice(0, colon), line.slice(colon + 1));
  }
  return fields;
}

async function read(control: Redis): Promise<RedisCost> {
  const info = parseInfo(await control.info('cpu', 'stats', 'commandstats'));
  const seconds = Number(info.get('used_cpu_user')) + Number(info.get('used_cpu_sys'));
  let scriptCalls = 0;
  for (const command of ['eval', 'evalsha', 'fcall']) {
    scriptCalls += Number(/^calls=(\d+)/.exec(info.get(`cmdstat_${command}`) ?? '')?.[1] ?? 0);
  }
  return { cpuUs: seconds * 1e6, commands: Number(info.get('total_commands_processed')), scriptCalls };
}
