import { defineScript } from '../script.js';

export const register = defineScript({
  name: 'register',
  memory: 'allow',
  keys: ['processes', 'processInfo'],
  /** An empty `info` leaves the record as it is. Orders up to the one with the id `obeyed` are deleted. */
  args: { process: 'text', info: 'text', obeyed: 'text', leaseMs: 'int', rememberMs: 'int', keepMs: 'int' },
  reply: ([kind, orders]: readonly ['registered' | 'unknown', string]) => ({ kind, orders }),
});
