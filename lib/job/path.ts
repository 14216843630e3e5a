import { quoted } from './text.js';

const MAX_KEY = 60;

/** One step of a path as a person reads it: `.name`, `[3]`, or `["any text"]`, without anything that could forge a log line. */
export function pathStep(key: string | number): string {
  if (typeof key === 'number') return `[${key}]`;
  const short = key.length > MAX_KEY ? `${key.slice(0, MAX_KEY - 3)}...` : key;
  if (/^[A-Za-z_$][\w$]*$/.test(key)) return `.${short}`;
  return `[${quoted(short)}]`;
}
