import { startProxy, type Proxy } from '../net/proxy.js';
import { serve } from './serve.js';

/** A slow network between the contender and Redis, in a process of its own. */
export type ProxyActs = typeof acts;

let proxy: Proxy;

const acts = {
  /** Returns the port to connect to. */
  async open({ host, port, delayMs }: { host: string; port: number; delayMs: number }): Promise<number> {
    proxy = await startProxy({ host, port }, delayMs);
    return proxy.port;
  },

  /** CPU time of the process so far, in microseconds. */
  cpuUs(): number {
    const { user, system } = process.cpuUsage();
    return user + system;
  },

  close: () => proxy.close(),
};

serve(acts);
