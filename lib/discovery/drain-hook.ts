import type { Logger } from '@nestjs/common';
import type { FoundProcessor } from './processor.explorer.js';

/**
 * Lets the drain begin before anything the processor (or listener) depends on is destroyed: Nest tears modules down from the
 * dependents to what they depend on, and a hook of our own, in a global module, would run last, with the database of
 * the application already closed. The processor's own hook runs after the drain.
 *
 * @param drain Never rejects; the first call starts it for all pools, all calls answer the same promise.
 */
export function drainBeforeDestroy(
  { instance, className }: Pick<FoundProcessor, 'instance' | 'className'>,
  drain: () => Promise<void>,
  logger: Logger,
): void {
  const own: unknown = instance['onModuleDestroy'];
  const hook = async () => {
    await drain();
    if (typeof own !== 'function') return;
    try {
      await own.call(instance);
    } catch (error) {
      // Passed on, it would make Nest 11 skip every later hook, and the connections would stay open.
      logger.error(`${className}.onModuleDestroy: ${describe(error)}`, stackOf(error));
    }
  };
  try {
    Object.defineProperty(instance, 'onModuleDestroy', { value: hook, configurable: true, writable: true });
  } catch {
    logger.warn(
      `${className} is frozen, so its jobs may still be running when what it injects is closed; do not freeze it`,
    );
  }
}

function describe(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

function stackOf(error: unknown): string | undefined {
  return error instanceof Error ? error.stack : undefined;
}
