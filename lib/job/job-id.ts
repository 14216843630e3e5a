import { randomFillSync, randomInt } from 'node:crypto';
import { InvalidJobIdError, InvalidJobNameError, InvalidQueueNameError } from '../errors.js';
import { faultOfText } from './text.js';

/** The possible last characters of a generated id. */
// prettier-ignore
export const LETTERS = [
  'A', 'B', 'C', 'D', 'E', 'F', 'G', 'H', 'I', 'J', 'K', 'L', 'M', 'N', 'O', 'P', 'Q', 'R', 'S', 'T', 'U', 'V', 'W', 'X', 'Y', 'Z',
] as const;

export type Letter = (typeof LETTERS)[number];

/** Length of a generated id in bytes. A test checks it. */
const LENGTH = 19;
const FIRST = LETTERS[0].charCodeAt(0);

/**
 * The bodies of a queue are spread over several hashes; the id of a job decides which hash has its body. If an id is as long as a
 * generated one and ends with one of the letters, the letter names the hash. All other ids are in the hash without a letter. The
 * scripts use the same rule (`hash_of`), so the choice needs no storage.
 */
export function letterOf(id: string): Letter | '' {
  const code = id.charCodeAt(id.length - 1);
  if (code < FIRST || code >= FIRST + LETTERS.length || id.length > LENGTH) return '';
  return Buffer.byteLength(id) === LENGTH ? LETTERS[code - FIRST]! : '';
}

const DIGITS = '0123456789abcdefghijklmnopqrstuvwxyz';

/** Every two-digit number in base 36. */
const PAIRS: readonly string[] = Array.from(
  { length: 36 * 36 },
  (_, n) => DIGITS.charAt(Math.floor(n / 36)) + DIGITS.charAt(n % 36),
);

/** All digits but the last three stay the same for this many ms (46 s). */
const STEP = 36 ** 3;

let lastMs = -1;
let lastText = '';
let lastStep = -1;
let stepText = '';

/**
 * A time in base 36, as used in the ids and bodies of jobs. The id and the body of a job have the same time, and the next job
 * usually has nearly the same, so only the changed digits are computed.
 */
export function timeText(ms: number): string {
  if (ms === lastMs) return lastText;
  // Such a time has at most three digits, so none can be reused.
  if (!(ms >= STEP)) return ms.toString(36);
  const step = Math.floor(ms / STEP);
  if (step !== lastStep) {
    lastStep = step;
    stepText = step.toString(36);
  }
  const rest = ms - step * STEP;
  lastMs = ms;
  lastText = stepText + PAIRS[Math.floor(rest / 36)]! + DIGITS.charAt(rest % 36);
  return lastText;
}

/** @throws {InvalidJobIdError} unless it is 1 to 255 bytes of well-formed text without control characters. */
export function checkJobId(value: unknown): string {
  const fault = faultOfText(value);
  if (fault !== undefined) throw new InvalidJobIdError(value, fault);
  return value as string;
}

/** The id of the job that a schedule adds for the occurrence at this time. */
export function scheduledJobId(scheduleId: string, at: number): string {
  return `${scheduleId}@${new Date(at).toISOString()}`;
}

const SCHEDULED = /@[+-]?\d{4,6}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

/** `runNow` of a schedule adds a generated id to its own. */
const RUN_NOW = /@[0-9a-z]{18,}[A-Z]$/;

/** The schedule that added the job with this id; undefined for other jobs. */
export function scheduleOf(jobId: string): string | undefined {
  const at = Math.max(jobId.search(SCHEDULED), jobId.search(RUN_NOW));
  return at > 0 ? jobId.slice(0, at) : undefined;
}

/**
 * Refuses ids like those of the jobs of schedules. A job with such an id would be taken for the occurrence of the schedule.
 *
 * @throws {InvalidJobIdError} as `checkJobId`, and for an id such as schedules make.
 */
export function checkNewJobId(value: unknown): string {
  const id = checkJobId(value);
  if (SCHEDULED.test(id))
    throw new InvalidJobIdError(value, 'ends like the id of a job that a schedule makes');
  return id;
}

/** The last checked name: usually the next job has the same one. */
let lastName: unknown;

/** @throws {InvalidJobNameError} unless it is 1 to 255 bytes of well-formed text without control characters. */
export function checkJobName(value: unknown): string {
  if (value === lastName && typeof value === 'string') return value;
  const fault = faultOfText(value);
  if (fault !== undefined) throw new InvalidJobNameError(value, fault);
  lastName = value;
  return value as string;
}

const MAX_QUEUE_NAME = 128;

/** @throws {InvalidQueueNameError} unless it matches `[A-Za-z0-9._-]{1,128}`. */
export function checkQueueName(value: unknown, place?: string): string {
  if (!isQueueName(value)) throw new InvalidQueueNameError(value, place);
  return value;
}

export function isQueueName(value: unknown): value is string {
  return isPlainName(value, MAX_QUEUE_NAME);
}

/** Whether it is 1 to `max` characters out of `A-Z a-z 0-9 . _ -`, which need no quoting in a key. */
export function isPlainName(value: unknown, max: number): value is string {
  if (typeof value !== 'string' || value.length === 0 || value.length > max) return false;
  for (let at = 0; at < value.length; at++) {
    const unit = value.charCodeAt(at);
    const plain =
      (unit >= 0x61 && unit <= 0x7a) || // a-z
      (unit >= 0x41 && unit <= 0x5a) || // A-Z
      (unit >= 0x30 && unit <= 0x39) || // 0-9
      unit === 0x2e || // .
      unit === 0x5f || // _
      unit === 0x2d; // -
    if (!plain) return false;
  }
  return true;
}

const IDS_PER_MS = 36 ** 3;
/** Random digits are drawn for this many milliseconds at once, because drawing them for each job would be slow. */
const DRAWN = 64;
/**
 * How many ids in a row have the same letter; all ids of one millisecond have the same. So the jobs of one call are in one hash,
 * and jobs that are added or finished at about the same time are in one or two. A letter is used again only after 1.3 million
 * jobs.
 */
export const IDS_PER_LETTER = 50_000;

/**
 * Generates ids of 19 characters that sort by time; ids of one generator are in order even within a millisecond. Nine characters
 * are the time in base 36 (enough until the year 5188). Six are random and change every millisecond. Three count within the
 * millisecond. The last one is the letter of the hash that has the body. So an id cannot be guessed, needs no random number of
 * its own, and two generators do not collide repeatedly.
 */
export class IdGenerator {
  private lastMs = 0;
  private countInMs = -1;
  /** The time and the random digits. */
  private start = startOf(0);
  /** `start` and the count without its last digit. */
  private head = '';
  private letter = randomInt(LETTERS.length);
  private countOfLetter = 0;
  /** Each last digit of the count, with the letter appended. */
  private tails = tailsOf(this.letter);

  /** If the clock stands still or steps back, and after 46,656 ids in a millisecond, ids run ahead of the clock. */
  next(nowMs: number): string {
    const ms = Math.floor(nowMs);
    if (ms > this.lastMs) {
      this.startMs(ms);
      if (this.countOfLetter >= IDS_PER_LETTER) this.startLetter();
    } else if (++this.countInMs === IDS_PER_MS) this.startMs(this.lastMs + 1);
    const digit = this.countInMs % 36;
    if (digit === 0) this.head = this.start + PAIRS[(this.countInMs / 36) | 0]!;
    return this.head + this.tails[digit]!;
  }

  private startLetter(): void {
    this.letter = (this.letter + 1) % LETTERS.length;
    this.countOfLetter = 0;
    this.tails = tailsOf(this.letter);
  }

  private startMs(ms: number): void {
    this.countOfLetter += this.countInMs + 1;
    this.lastMs = ms;
    this.start = startOf(ms);
    this.countInMs = 0;
  }
}

function tailsOf(letter: number): readonly string[] {
  return Array.from(DIGITS, (digit) => digit + LETTERS[letter]!);
}

const drawn: string[] = [];

function startOf(ms: number): string {
  if (drawn.length === 0) draw();
  return timeText(ms).padStart(9, '0') + drawn.pop()!;
}

/**
 * Draws six random digits for each millisecond. With 2^32 numbers for 1,296 pairs, no pair is likelier than another by more than
 * a millionth.
 */
function draw(): void {
  const numbers = randomFillSync(new Uint32Array(DRAWN * 3));
  const pair = (at: number) => PAIRS[numbers[at]! % PAIRS.length]!;
  for (let at = 0; at < numbers.length; at += 3) drawn.push(pair(at) + pair(at + 1) + pair(at + 2));
}

/** The generator of this process. */
const ids = new IdGenerator();

/** A new job id; see `IdGenerator`. */
export function generateId(nowMs: number): string {
  return ids.next(nowMs);
}
