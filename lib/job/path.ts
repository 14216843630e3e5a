import { quoted } from './text.js';

const MAX_KEY = 60;

/** The path of a value in errors; a function where many values are checked and few paths are needed. */
export type Path = string | (() => string);

export function pathText(path: Path): string {
  return typeof path === 'string' ? path : path();
}

/** The place of something inside. */
export function pathInside(path: Path, step: string): Path {
  return typeof path === 'string' ? path + step : () => path() + step;
}

/** One step of a path as a person reads it: `.name`, `[3]`, or `["any text"]`, without anything that could forge a log line. */
export function pathStep(key: string | number): string {
  if (typeof key === 'number') return `[${key}]`;
  const short = key.length > MAX_KEY ? `${key.slice(0, MAX_KEY - 3)}...` : key;
  if (/^[A-Za-z_$][\w$]*$/.test(key)) return `.${short}`;
  return `[${quoted(short)}]`;
}
