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
 * Writes down each call of a process twice, when it begins and when it is answered: what a process that was killed had begun
 * is known. `readHistory` makes one call of the two lines.
 */
export class Recorder {
  private calls = 0;

  constructor(
    private readonly process: string,
    private readonly append: (line: string) => void,
    private readonly epoch = 0,
  ) {}

  /** To a file, each line at once. */
  static toFile(process: string, file: string, epoch: number): Recorder {
    return new Recorder(process, (line) => appendFileSync(file, line), epoch);
  }

  /** Of now, or of that moment of the machine's clock, on the clock of the history. */
  now(moment = monotonicMs()): number {
    return Math.round((moment - this.epoch) * 1000) / 1000;
  }

  /** What is known only when it is over. */
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

/** The calls in the lines of one process, or of a whole history in which each call is one line. */
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

/** The calls of several processes, in the order in which they began. */
export function readHistory(files: readonly string[]): Call[] {
  return files.flatMap((file) => callsOf(readFileSync(file, 'utf8'))).toSorted((a, b) => a.start - b.start);
}

/** Null for an empty line, and for the last one of a process that was killed while it wrote it. */
function parse(line: string): Begun | Ended | Call | null {
  if (line === '') return null;
  try {
    return JSON.parse(line) as Begun | Ended | Call;
  } catch {
    return null;
  }
}
