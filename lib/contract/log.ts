import { createRequire } from 'node:module';
import type { Logger } from '@nestjs/common';
import { escaped, escapedStack } from '../errors/show.js';
import { messageOf, stackOf } from '../errors/thrown.js';

/**
 * Writes to the log of the application. All log lines go through it: messages often contain text from outside, such as ids and
 * error messages, which must not forge a line or control the terminal.
 */
export class Log {
  private made: Sink | undefined;
  private readonly failed = new Set<string>();

  constructor(private readonly context: string) {}

  /** Created at the first line, so that a producer without Nest does not load it. */
  private get logger(): Sink {
    return (this.made ??= sinkOf(this.context));
  }

  debug(text: string): void {
    this.logger.debug(escaped(text));
  }

  log(text: string): void {
    this.logger.log(escaped(text));
  }

  warn(text: string): void {
    this.logger.warn(escaped(text));
  }

  error(text: string, stack?: string): void {
    if (stack === undefined) this.logger.error(escaped(text));
    else this.logger.error(escaped(text), escapedStack(stack));
  }

  /**
   * Calls the callback of a timer. An exception would end the process, so it is caught and logged once. Returns whether there was
   * none.
   */
  guard(what: string, act: () => void): boolean {
    try {
      act();
      return true;
    } catch (error) {
      if (!this.failed.has(what)) this.error(`${what}: ${messageOf(error)}`, stackOf(error));
      this.failed.add(what);
      return false;
    }
  }
}

type Sink = Pick<Logger, 'debug' | 'log' | 'warn' | 'error'>;

let loggerOfNest: typeof Logger | undefined;

/** All logs use this logger. A bundle contains a copy of Nest that `createRequire` does not find. */
export function logWith(logger: typeof Logger): void {
  loggerOfNest = logger;
}

let ownSink: Sink | undefined;

/** All logs use this, unless the process is an application. For the command, whose standard output other programs read. */
export function logTo(sink: Sink): void {
  ownSink = sink;
}

/** Whether this process is an application, and not a script or the command line tool, whose output its caller reads. */
export function isApplication(): boolean {
  return loggerOfNest !== undefined;
}

/** The logger of Nest, or the console if Nest is not installed. */
function sinkOf(context: string): Sink {
  if (loggerOfNest) return new loggerOfNest(context);
  if (ownSink) return ownSink;
  try {
    const { Logger: NestLogger } = createRequire(__filename)('@nestjs/common') as {
      readonly Logger: typeof Logger;
    };
    return new NestLogger(context);
  } catch {
    const line = (text: unknown) => `[godwit] ${context}: ${String(text)}`;
    return {
      debug: () => undefined,
      log: (text: unknown) => console.log(line(text)),
      warn: (text: unknown) => console.warn(line(text)),
      error: (text: unknown, stack?: unknown) => console.error(line(text), ...(stack ? [stack] : [])),
    };
  }
}
