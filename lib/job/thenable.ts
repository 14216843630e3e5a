/** Whether it can be waited for, also where it is a promise of another realm or library. Throws what looking at it throws, as `await` does. */
export function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof (value as PromiseLike<unknown> | null | undefined)?.then === 'function';
}
