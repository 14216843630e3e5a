import { afterAll, beforeAll } from 'vitest';
import { ownerArgs } from './acl-user.js';
import { startRedis, type RunningRedis, type StartRedisOptions } from '../../tools/redis.mjs';

/**
 * What a server with these arguments has acknowledged survives its SIGKILL. Redis' default, `everysec`, puts off its writes
 * for up to 2 s where the disk is busy, as it is when other specs work beside.
 */
export const KEEPING: readonly string[] = ['--appendonly', 'yes', '--appendfsync', 'always'];

/**
 * A Redis server for one spec file alone, to kill, stop, fill or reconfigure: started before its tests, ended after them.
 * Call it at the top of the file, and give it to `useRedis({ server })`. By default it keeps nothing on disk;
 * `{ args: KEEPING }` lets its data survive `kill9()` and `restart()`.
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
