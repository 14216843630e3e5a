import { GodwitError } from './base.js';

const SENTENCES = {
  'next-not-called':
    'returned without calling next(), so the handler did not run; return next(), or throw why not',
  'next-called-twice':
    'called next() twice, and the handler ran once; call it once: to try again is for `attempts`',
  'next-called-late': 'called next() after it had returned; the handler did not run: return next()',
} as const;

/**
 * A hook of `forRoot().wrap` did not call `next()` once. The attempt failed like any other.
 *
 * @example
 * if (error instanceof WrapHookError) console.error(error.hook, error.fault);
 */
export class WrapHookError extends GodwitError {
  readonly code = 'GODWIT_WRAP_HOOK';

  constructor(
    /** Which: `forRoot().wrap[1] (withTenant)`. */
    readonly hook: string,
    /** What it did. */
    readonly fault: keyof typeof SENTENCES,
    options?: { cause?: unknown },
  ) {
    super(`${hook} ${SENTENCES[fault]}`, options);
  }
}
