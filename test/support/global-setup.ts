import type { TestProject } from 'vitest/node';
import { startRedis } from '../../tools/redis.mjs';

declare module 'vitest' {
  interface ProvidedContext {
    /** URL of the server that all spec files of the run share, with all rights. */
    redisUrl: string;
  }
}

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const redis = await startRedis({ private: true });
  project.provide('redisUrl', redis.url);
  return () => redis.stop();
}
