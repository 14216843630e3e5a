import { defineScript } from '../script.js';

export const register = defineScript({
  name: 'register',
  memory: 'allow',
  keys: ['processes', 'processInfo'],
  /** An empty `info` leaves the record as it is. */
  args: { process: 'text', info: 'text', leaseMs: 'int', rememberMs: 'int', keepMs: 'int' },
  reply: (raw: string): 'registered' | 'unknown' => raw as 'registered' | 'unknown',
});
