import type { Redis } from 'ioredis';
import { steady } from './wait.js';

/** Connections of the suite itself carry this name and are not counted. */
export const CONTROL_NAME = 'bench-control';

/** Open connections except the suite's own, as soon as their number is stable. */
export function connections(control: Redis): Promise<number> {
  return steady(async () => {
    const list = String(await control.client('LIST'));
    return list.split('\n').filter((line) => line !== '' && !line.includes(` name=${CONTROL_NAME} `)).length;
  }, 500);
}
