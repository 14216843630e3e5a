// `node --import …/no-ioredis.mjs program`: whoever asks for ioredis is refused, so that a program which runs needs no Redis.
import { register } from 'node:module';

const HOOKS = `export function resolve(specifier, context, next) {
  if (/^ioredis(\\/|$)/.test(specifier)) throw new Error('ioredis is asked for');
  return next(specifier, context);
}`;
register(`data:text/javascript,${encodeURIComponent(HOOKS)}`);
