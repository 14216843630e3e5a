import { afterAll, beforeAll } from 'vitest';
import { ownerArgs } from './acl-user.js';
import { startRedis, type RunningRedis, type StartRedisOptions } from '../../tools/redis.mjs';

/**
 * Redis writes every acknowledged change to disk at once, so it survives SIGKILL. The default, `everysec`, delays
 * writes for up to 2 s if the disk is busy, as it is when other specs run too.
 */
export const KEEPING: readonly string[] = ['--appendonly', 'yes', '--appendfsync', 'always'];

/**
 * A Redis server for one spec file, which may kill, stop, fill or reconfigure it. It starts before the tests and ends
 * after them. Call it at the top of the file, and pass it to `useRedis({ server })`. By default it keeps nothing on
 * disk; with `{ args: KEEPING }` its data survives `kill9()` and `restart()`.
 */
export function useServer(options: Omit<StartRedisOptions, 'private'> = {}): RunningRedis {
  let server: RunningRedis;
  beforeAll(async () => {
    server = await startRedis({ ...options, args: [...ownerArgs(), ...(options.args ?? [])], private: true });
  });
  afterAll(() => server.stop());
  return {
    get url() {
      return server.url;
    },
    get port() {
      return server.port;
    },
    get pid() {
      return server.pid;
    },
    get dir() {
      return server.dir;
    },
    stop: () => server.stop(),
    kill9: () => server.kill9(),
    restart: () => server.restart(),
  };
}
