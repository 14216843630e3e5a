// `node --import …/no-ioredis.mjs program`: importing ioredis fails. A program that still runs does not need Redis.
import * as nodeModule from 'node:module';
import { isMainThread } from 'node:worker_threads';

export function resolve(specifier, context, next) {
  if (/^ioredis(\/|$)/.test(specifier)) throw new Error('ioredis is asked for');
  return next(specifier, context);
}

// Node 20 has only register(), which Node 26 warns about. It loads this file a second time, in a thread of its own.
if ('registerHooks' in nodeModule) nodeModule.registerHooks({ resolve });
else if (isMainThread) nodeModule.register(import.meta.url);
