/**
 * Finds the times of cron expressions by trying every second. It is slow, and shares no code with the library. Fields
 * hold `*`, numbers, ranges, lists and steps of `*`. Six fields begin with the seconds.
 */
export function cronOccurrences(cron: string, tz: string, from: number, upTo: number): number[] {
  const fields = cron.split(' ');
  if (fields.length === 5) fields.unshift('0');
  const clock = new WallClock(tz);
  const matches = (at: number) => clock.read(at).every((value, i) => matchesField(fields[i]!, value));
  // A fixed wall time that comes twice occurs the first time only.
  const isFixed = !/[*/]/.test(fields.slice(0, 3).join(''));
  const cameBefore = (at: number) =>
    [1_800_000, 3_600_000].some((ms) => clock.read(at - ms).join() === clock.read(at).join());
  const found: number[] = [];
  for (let at = Math.ceil(from / 1000) * 1000; at <= upTo; at += 1000) {
    if (matches(at) && !(isFixed && cameBefore(at))) found.push(at);
  }
  return found;
}

function matchesField(field: string, value: number): boolean {
  return field.split(',').some((part) => {
    const [range, step] = part.split('/');
    if (range === '*') return value % Number(step ?? 1) === 0;
    const [low, high = low] = range!.split('-').map(Number);
    return value >= low! && value <= high!;
  });
}

const WEEKDAYS = ['Sun', 'Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat'];

/** The wall clock of the zone at this time. */
class WallClock {
  private readonly format: Intl.DateTimeFormat;

  constructor(tz: string) {
    this.format = new Intl.DateTimeFormat('en-GB', {
      timeZone: tz,
      hourCycle: 'h23',
      weekday: 'short',
      month: 'numeric',
      day: 'numeric',
      hour: 'numeric',
      minute: 'numeric',
      second: 'numeric',
    });
  }

  /** Second, minute, hour, day, month, day of the week. */
  read(at: number): number[] {
    const parts = new Map(this.format.formatToParts(at).map(({ type, value }) => [type, value]));
    const numbers = (['second', 'minute', 'hour', 'day', 'month'] as const).map((type) =>
      Number(parts.get(type)),
    );
    return [...numbers, WEEKDAYS.indexOf(parts.get('weekday')!)];
  }
}
