import { defineScript } from '../script.js';

export const register = defineScript({
  name: 'register',
  memory: 'allow',
  keys: ['processes', 'processInfo'],
  /** `info` empty: it is as it was. */
  args: { process: 'text', info: 'text', leaseMs: 'int', rememberMs: 'int', keepMs: 'int' },
  reply: (raw: string): 'registered' | 'unknown' => raw as 'registered' | 'unknown',
});
