/** What a decorator stands on where it is no instance method with a plain name, as a phrase after "is"; null where it is one. */
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
