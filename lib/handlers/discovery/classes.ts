import type { DiscoveryService } from '@nestjs/core';

/** The entry of a provider or controller in Nest's container. */
export type Wrapper = ReturnType<DiscoveryService['getProviders']>[number];
export type Class = { readonly name: string; readonly prototype: object };

/** The class of a provider, even if a factory made it or it was given as a value. */
export function classOf(wrapper: Wrapper): Class | undefined {
  try {
    const instance: unknown = wrapper.instance;
    const type: unknown =
      typeof instance === 'object' && instance !== null
        ? Reflect.getPrototypeOf(instance)?.constructor
        : // A request-scoped factory has created no instance yet, but its token may be the class.
          wrapper.isFactory && typeof wrapper.token === 'function'
          ? wrapper.token
          : wrapper.metatype;
    return typeof type === 'function' && typeof type.prototype === 'object' && type.prototype !== null
      ? type
      : undefined;
  } catch {
    // A value that cannot be inspected (a strict mock, a revoked proxy) has no class.
    return undefined;
  }
}

/** Name of the module that provides the class. */
export function moduleOf(wrapper: Wrapper): string {
  return wrapper.host?.name ?? 'a module without a name';
}

/** A method as declared by one class of an inheritance chain. */
interface Declared {
  /** `Class.method`. */
  readonly place: string;
  readonly method: unknown;
}

/** The declarations of a method in a class and its base classes. The nearest comes first and hides the others. */
export function declared(type: Class, name: string): Declared[] {
  return prototypesOf(type)
    .filter((prototype) => Object.hasOwn(prototype, name))
    .map((prototype) => ({
      place: `${prototype.constructor.name}.${name}`,
      method: methodOf(prototype, name),
    }));
}

export function methodOf(prototype: object, name: string): unknown {
  return (prototype as Record<string, unknown>)[name];
}

/** The prototypes of the class and its base classes, the nearest first. */
export function prototypesOf(type: Class): object[] {
  const chain: object[] = [];
  for (
    let prototype: object | null = type.prototype;
    prototype && prototype !== Object.prototype;
    prototype = Reflect.getPrototypeOf(prototype)
  ) {
    chain.push(prototype);
  }
  return chain;
}
