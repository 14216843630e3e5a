import type { Writable } from 'node:stream';
import { escaped } from '../../errors/show.js';

/** Maximum output that waits for a stalled reader; beyond it lines are dropped, because the work matters more than its table. */
const MOST_WAITING = 1_048_576;

/** The standard outputs of a command. A reader that ends early (`| head`) causes no error. */
export class Output {
  private readonly listeners = new Set<() => void>();

  constructor(
    private readonly out: Writable = process.stdout,
    private readonly err: Writable = process.stderr,
  ) {
    out.on('error', () => {
      for (const listener of this.listeners) listener();
    });
    // There is no reader any more.
    err.on('error', () => undefined);
  }

  /** Called when the reader of the standard output is gone. Returns a function that removes the listener. */
  onClosed(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  print(text: string): void {
    if (this.out.writableLength < MOST_WAITING) this.out.write(text);
  }

  /** @param before lines of this program, such as the usage. The message is the last line, so that it stays on the screen. */
  printError(text: string, before?: string): void {
    this.err.write(`${before === undefined ? '' : `${before}\n`}${escaped(text)}\n`);
  }
}

let standard: Output | undefined;

/** The output of this process. It listens to its streams until the process ends: a reader may end after the command. */
export function standardOutput(): Output {
  return (standard ??= new Output());
}
