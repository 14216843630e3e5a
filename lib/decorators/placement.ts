import { BootstrapError } from '../errors.js';

/** What a decorator is on, if not an instance method with a plain name, as a phrase after "is"; else null. */
export function otherThanMethod(
  target: object,
  key: PropertyKey | undefined,
  descriptor: PropertyDescriptor | undefined,
): string | null {
  if (key === undefined) return 'a class';
  if (typeof target === 'function') return 'static';
  if (typeof key === 'symbol') return 'named by a symbol';
  if (descriptor === undefined) return 'a property';
  if (descriptor.get || descriptor.set) return 'a getter or setter';
  // As a parameter decorator the third argument is the index of the parameter.
  if (typeof descriptor !== 'object') return 'a parameter';
  return typeof descriptor.value === 'function' ? null : 'not a function';
}

/**
 * Refuses a decorator on anything else.
 *
 * @param mark the decorator as sentences call it.
 * @throws {BootstrapError}
 */
export function refuseOtherThanMethod(
  mark: string,
  target: object,
  key: PropertyKey | undefined,
  descriptor: PropertyDescriptor | undefined,
): void {
  const what = otherThanMethod(target, key, descriptor);
  if (what === null) return;
  const className = typeof target === 'function' ? target.name : target.constructor.name;
  const place = key === undefined ? className : `${className}.${String(key)}`;
  throw new BootstrapError([
    `${mark} stands on ${place}, which is ${what}; put it on an instance method with a plain name`,
  ]);
}
