import type { Writable } from 'node:stream';
import { escaped } from '../../errors/show.js';

/** Maximum output that waits for a stalled reader; beyond it lines are dropped, because the work matters more than its table. */
const MOST_WAITING = 1_048_576;

/** The standard outputs of a command. A reader that ends early (`| head`) causes no error. */
export class Output {
  /** Whether errors are JSON objects, one on each line. */
  isJson = false;
  private readonly out: Writable = process.stdout;
  private readonly err: Writable = process.stderr;
  private readonly listeners = new Set<() => void>();
  private fault: NodeJS.ErrnoException | undefined;
  private hurry = () => {};
  /** Resolves when `finish` must no longer wait for a reader that has stopped reading. */
  private readonly late = new Promise<void>((resolve) => (this.hurry = resolve));

  constructor() {
    this.out.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code !== 'EPIPE') this.fault ??= error;
      for (const listener of this.listeners) listener();
    });
    // There is no reader any more.
    this.err.on('error', () => undefined);
  }

  /** Called when the reader of the standard output is gone. Returns a function that removes the listener. */
  onClosed(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  print(text: string): void {
    if (this.out.writableLength < MOST_WAITING) this.out.write(text);
  }

  /** From now on `finish` waits a second at most. */
  stop(): void {
    setTimeout(this.hurry, 1_000).unref();
  }

  /**
   * Resolves when everything is written, as a pipe takes 64 KiB at a time. The exit code becomes 1 if something could not be written,
   * unless the reader is gone.
   */
  async finish(code: number): Promise<number> {
    const written = [this.out, this.err].map(
      (to) => new Promise<void>((resolve) => to.write('', () => resolve())),
    );
    await Promise.race([Promise.all(written), this.late]);
    if (!this.fault) return code;
    this.err.write(`godwit: the output cannot be written: ${escaped(this.fault.message)}\n`);
    return code === 0 ? 1 : code;
  }

  /**
   * Prints an error or a warning.
   *
   * @param code for programs.
   */
  complain(code: string, message: string, usage?: string): void {
    if (this.isJson) this.err.write(`${JSON.stringify({ code, message })}\n`);
    else this.printError(`godwit: ${message}`, usage);
  }

  /**
   * @param usage a hint in one line follows the message. A longer text is before it, because the message could otherwise leave the
   * screen.
   */
  printError(text: string, usage?: string): void {
    const lines = usage === undefined ? [] : [usage];
    const isLong = usage?.includes('\n') === true;
    const message = escaped(text);
    this.err.write(`${(isLong ? [...lines, message] : [message, ...lines]).join('\n')}\n`);
  }
}

let standard: Output | undefined;

/** The output of this process. It listens to its streams until the process ends: a reader may end after the command. */
export function standardOutput(): Output {
  return (standard ??= new Output());
}
