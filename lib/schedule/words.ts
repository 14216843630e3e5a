/** Cron expressions as sentences, for people. */

const NICKNAMES: Readonly<Record<string, string>> = {
  '@yearly': '0 0 1 1 *',
  '@annually': '0 0 1 1 *',
  '@monthly': '0 0 1 * *',
  '@weekly': '0 0 * * 0',
  '@daily': '0 0 * * *',
  '@midnight': '0 0 * * *',
  '@hourly': '0 * * * *',
};
const DAYS = ['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday', 'Sunday'];
const MONTHS = [
  '',
  'January',
  'February',
  'March',
  'April',
  'May',
  'June',
  'July',
  'August',
  'September',
  'October',
  'November',
  'December',
];
const NTH = ['', 'first', 'second', 'third', 'fourth', 'fifth'];
/** A longer list is not easier to read than the expression. */
const MOST_TIMES = 4;

/** `Monday to Friday at 07:00`. Null for an expression that this cannot say in few words, such as one with both kinds of days. */
export function cronInWords(cron: string): string | null {
  const fields = (NICKNAMES[cron.trim().toLowerCase()] ?? cron).trim().split(/\s+/);
  if (fields.length === 6 && fields[0] === '0') fields.shift();
  const [minute, hour, day, month, week] = fields;
  if (fields.length !== 5 || (day !== '*' && week !== '*')) return null;
  const days = daysInWords(day!, month!, week!);
  const times = fixedTimes(minute!, hour!);
  if (days === null) return null;
  if (times !== null) return `${days || 'every day'} at ${times}`;
  const steps = stepsInWords(minute!, hour!);
  return steps === null ? null : days === '' ? steps : `${steps}, ${days}`;
}

/** `07:00 and 19:00`. Null if the times are not a short list. */
function fixedTimes(minute: string, hour: string): string | null {
  const [minutes, hours] = [numbersOf(minute), numbersOf(hour)];
  if (!minutes || !hours || minutes.length * hours.length > MOST_TIMES) return null;
  return listed(hours.flatMap((h) => minutes.map((m) => `${two(h)}:${two(m)}`)));
}

function stepsInWords(minute: string, hour: string): string | null {
  const step = minute === '*' ? 1 : stepOf(minute, 60);
  const [from, to] = /^(\d+)-(\d+)$/.exec(hour)?.slice(1).map(Number) ?? [];
  if (step !== null) {
    const often = step === 1 ? 'every minute' : `every ${step} min`;
    if (hour === '*') return often;
    return from === undefined ? null : `${often} from ${two(from)}:00 to ${two(to!)}:59`;
  }
  const [at, ...more] = numbersOf(minute) ?? [];
  if (at === undefined || more.length >= MOST_TIMES) return null;
  const past = minute === '0' ? '' : ` at minute ${listed([at, ...more].map(String))}`;
  if (hour === '*') return `every hour${past}`;
  if (more.length > 0) return null;
  if (from !== undefined) return `every hour from ${two(from)}:${two(at)} to ${two(to!)}:${two(at)}`;
  const hours = stepOf(hour, 24);
  return hours === null ? null : `every ${hours} hours${past}`;
}

/** An empty text for every day. */
function daysInWords(day: string, month: string, week: string): string | null {
  const months = month === '*' ? '' : namesOf(month, MONTHS);
  if (months === null) return null;
  if (week !== '*') {
    const days = weekInWords(week);
    return days === null ? null : months === '' ? days : `${days} in ${months}`;
  }
  if (day === '*') return months === '' ? '' : `every day in ${months}`;
  const of = months === '' ? 'every month' : months;
  if (/^L$/i.test(day)) return `on the last day of ${of}`;
  const numbers = numbersOf(day);
  if (numbers) return `on day ${listed(numbers.map(String))} of ${of}`;
  const [, from, to] = /^(\d+)-(\d+)$/.exec(day) ?? [];
  return from === undefined ? null : `on days ${from} to ${to} of ${of}`;
}

function weekInWords(week: string): string | null {
  const [, name, nth] = /^(\w+)#([1-5L])$/i.exec(week) ?? [];
  if (name === undefined) return namesOf(week, DAYS);
  const day = nameOf(name, DAYS);
  return day && `on the ${NTH[Number(nth)] ?? 'last'} ${day} of the month`;
}

/** `Monday to Friday`, `January and July`. */
function namesOf(field: string, names: readonly string[]): string | null {
  const parts = field.split(',').map((part) => {
    const ends = part.split('-').map((end) => nameOf(end, names));
    return ends.length > 2 || ends.includes(null) ? null : ends.join(' to ');
  });
  return parts.includes(null) ? null : listed(parts as string[]);
}

function nameOf(text: string, names: readonly string[]): string | null {
  if (/^\d{1,2}$/.test(text)) return names[Number(text)] || null;
  if (!/^[a-z]{3}$/i.test(text)) return null;
  return names.find((name) => name.slice(0, 3).toLowerCase() === text.toLowerCase()) ?? null;
}

/** `*` with the step 15, of 60, is 15. Null for a step that does not divide the whole: the last one would be shorter. */
function stepOf(field: string, whole: number): number | null {
  const step = Number(/^(?:\*|0)\/(\d{1,2})$/.exec(field)?.[1]);
  return step > 1 && step < whole && whole % step === 0 ? step : null;
}

function numbersOf(field: string): number[] | null {
  return /^\d{1,2}(,\d{1,2})*$/.test(field) ? field.split(',').map(Number) : null;
}

const two = (number: number) => String(number).padStart(2, '0');

/** `a, b and c`. */
function listed(parts: readonly string[]): string {
  return parts.length < 2 ? parts.join('') : `${parts.slice(0, -1).join(', ')} and ${parts.at(-1)}`;
}
