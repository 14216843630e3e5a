// `node --import …/no-ioredis.mjs program`: importing ioredis fails. A program that still runs does not need Redis.
import { register } from 'node:module';

const HOOKS = `export function resolve(specifier, context, next) {
  if (/^ioredis(\\/|$)/.test(specifier)) throw new Error('ioredis is asked for');
  return next(specifier, context);
}`;
register(`data:text/javascript,${encodeURIComponent(HOOKS)}`);
