import { appendFileSync, readFileSync } from 'node:fs';
import type { Call, Outcome, Verb } from './record.js';

type Begun = Pick<Call, 'process' | 'verb' | 'queue' | 'id' | 'args' | 'start'> & { readonly n: number };
type Ended = Pick<Call, 'outcome' | 'value'> & { readonly n: number; readonly end: number };
export type End = (outcome: Outcome, value?: unknown) => void;

/** Ms of the machine's monotonic clock, the same in every process. */
export function monotonicMs(): number {
  return Number(process.hrtime.bigint() / 1000n) / 1000;
}

/**
 * Writes each call of a process twice, when it starts and when it is answered, so that calls of a killed process are
 * known too. `readHistory` merges the two lines.
 */
export class Recorder {
  private calls = 0;

  constructor(
    private readonly process: string,
    private readonly append: (line: string) => void,
    private readonly epoch = 0,
  ) {}

  /** Writes to a file, each line at once. */
  static toFile(process: string, file: string, epoch: number): Recorder {
    return new Recorder(process, (line) => appendFileSync(file, line), epoch);
  }

  /** The current time, or the time of that moment, on the clock of the history. */
  now(moment = monotonicMs()): number {
    return Math.round((moment - this.epoch) * 1000) / 1000;
  }

  /** Values that are known only at the end. */
  write({ verb, args, start }: Pick<Call, 'verb' | 'args' | 'start'>): void {
    const call: Call = {
      process: this.process,
      verb,
      queue: '',
      id: '',
      args,
      start,
      end: this.now(),
      outcome: 'ok',
      value: null,
    };
    this.append(`${JSON.stringify(call)}\n`);
  }

  begin(verb: Verb, queue: string, id: string, args: object = {}): End {
    const n = ++this.calls;
    const begun: Begun = {
      n,
      process: this.process,
      verb,
      queue,
      id,
      args: args as Call['args'],
      start: this.now(),
    };
    this.append(`${JSON.stringify(begun)}\n`);
    let isOver = false;
    return (outcome, value = null) => {
      if (isOver) return;
      isOver = true;
      const ended: Ended = { n, end: this.now(), outcome, value };
      this.append(`${JSON.stringify(ended)}\n`);
    };
  }
}

/** Reads the lines of one process, or of a whole history with one line per call. */
export function callsOf(lines: string): Call[] {
  const begun = new Map<number, Begun>();
  const ended = new Map<number, Ended>();
  const whole: Call[] = [];
  for (const line of lines.split('\n')) {
    const part = parse(line);
    if (part === null) continue;
    if (!('verb' in part)) ended.set(part.n, part);
    else if ('outcome' in part) whole.push(part);
    else begun.set(part.n, part);
  }
  const joined = [...begun.values()].map(({ n, ...call }) => {
    const { end, outcome, value } = ended.get(n) ?? { end: null, outcome: 'indeterminate', value: null };
    return { ...call, end, outcome, value };
  });
  return [...whole, ...joined];
}

/** The calls of several processes, ordered by start. */
export function readHistory(files: readonly string[]): Call[] {
  return files.flatMap((file) => callsOf(readFileSync(file, 'utf8'))).toSorted((a, b) => a.start - b.start);
}

/** Null for an empty line, and for an incomplete last line of a killed process. */
function parse(line: string): Begun | Ended | Call | null {
  if (line === '') return null;
  try {
    return JSON.parse(line) as Begun | Ended | Call;
  } catch {
    return null;
  }
}
