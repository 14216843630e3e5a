import { Logger } from '@nestjs/common';
import { escaped, escapedStack } from '../errors/show.js';

/**
 * The only way to the log of the application: messages often hold text from outside, such as ids and messages of other errors,
 * which must not forge a line or change the terminal.
 */
export class Log {
  private readonly logger: Logger;

  constructor(context: string) {
    this.logger = new Logger(context);
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
}
