import { Alarm } from './alarm.js';
import { now } from './clock.js';

/** Calls `depart(i)` at `startAt + i · everyMs`, however long earlier calls take. Late calls are made at once. */
export async function timetable(
  count: number,
  startAt: number,
  everyMs: number,
  depart: (i: number) => void,
): Promise<void> {
  let next = 0;
  let arrived!: () => void;
  const end = new Promise<void>((resolve) => (arrived = resolve));
  const alarm = new Alarm(() => {
    while (next < count && startAt + next * everyMs <= now()) depart(next++);
    if (next < count) alarm.set(startAt + next * everyMs);
    else arrived();
  });
  alarm.set(startAt);
  await end;
  await alarm.close();
}
