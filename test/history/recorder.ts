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
    private readonly write: (line: string) => void,
    private readonly epoch = 0,
  ) {}

  /** To a file, each line at once. */
  static toFile(process: string, file: string, epoch: number): Recorder {
    return new Recorder(process, (line) => appendFileSync(file, line), epoch);
  }

  now(): number {
    return Math.round((monotonicMs() - this.epoch) * 1000) / 1000;
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
    this.write(`${JSON.stringify(begun)}\n`);
    let isOver = false;
    return (outcome, value = null) => {
      if (isOver) return;
      isOver = true;
      const ended: Ended = { n, end: this.now(), outcome, value };
      this.write(`${JSON.stringify(ended)}\n`);
    };
  }
}

/** The calls in the lines of one process, in the order in which they began. */
export function callsOf(lines: string): Call[] {
  const begun = new Map<number, Begun>();
  const ended = new Map<number, Ended>();
  for (const line of lines.split('\n')) {
    const part = parse(line);
    if (part === null) continue;
    if ('verb' in part) begun.set(part.n, part);
    else ended.set(part.n, part);
  }
  return [...begun.values()].map(({ n, ...call }) => {
    const { end, outcome, value } = ended.get(n) ?? { end: null, outcome: 'indeterminate', value: null };
    return { ...call, end, outcome, value };
  });
}

/** The calls of several processes, in the order in which they began. */
export function readHistory(files: readonly string[]): Call[] {
  return files.flatMap((file) => callsOf(readFileSync(file, 'utf8'))).toSorted((a, b) => a.start - b.start);
}

/** Null for an empty line, and for the last one of a process that was killed while it wrote it. */
function parse(line: string): Begun | Ended | null {
  if (line === '') return null;
  try {
    return JSON.parse(line) as Begun | Ended;
  } catch {
    return null;
  }
}
