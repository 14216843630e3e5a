import { describe, expect, it } from 'vitest';
import { FAULTS, type FaultKind } from './faults.js';
import { UsageError, readOptions } from './options.js';
import { makeSchedule } from './schedule.js';

const scheduleOf = (...argv: string[]) => makeSchedule(readOptions(argv)!);

describe('the schedule of the nemesis', () => {
  it('is the same for the same seed, and another for another', () => {
    expect(scheduleOf('--seed', '7')).toEqual(scheduleOf('--seed', '7'));
    expect(scheduleOf('--seed', '7')).not.toEqual(scheduleOf('--seed', '8'));
  });

  it('holds every kind of fault as often as it is asked for, over the whole run', () => {
    const acts = scheduleOf('--seed', '7', '--worker-kills', '50', '--redis-kills', '5');
    const times = (kind: FaultKind) => acts.filter((act) => act.kind === kind).map(({ at }) => at);
    expect(acts).toHaveLength(55);
    expect(times('redis-kill')).toHaveLength(5);
    const kills = times('worker-kill');
    for (let part = 0; part < 10; part++) {
      const inPart = kills.filter((at) => at >= part / 10 && at < (part + 1) / 10);
      expect(inPart.length).toBeGreaterThanOrEqual(3);
    }
    expect(acts.map(({ at }) => at)).toEqual(kills.concat(times('redis-kill')).toSorted((a, b) => a - b));
  });

  it('contains every kind if none is named', () => {
    const kinds = new Set(
      scheduleOf(...'--seed 7 --jobs 0 --full-disk 1 --aof-cuts 1 --all'.split(' ')).map(({ kind }) => kind),
    );
    expect([...kinds].toSorted()).toEqual(Object.keys(FAULTS).toSorted());
    expect(scheduleOf('--none')).toEqual([]);
  });

  it.each([
    ['--jobs', 'many'],
    ['--seed', '1.5'],
    ['--fsync', 'sometimes'],
    ['--broken', 'all'],
    ['--aof-cuts', '1'],
    ['--no-such'],
  ])('refuses %s %s', (...argv) => {
    expect(() => readOptions(argv)).toThrow(UsageError);
  });
});
