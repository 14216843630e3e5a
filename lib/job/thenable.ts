/**
 * Whether the value can be awaited, including promises of other realms or libraries. Throws if accessing `then` throws, as
 * `await` does.
 */
export function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof (value as PromiseLike<unknown> | null | undefined)?.then === 'function';
}
