import type { DiscoveryService } from '@nestjs/core';

/** What Nest knows of one provider or controller. */
export type Wrapper = ReturnType<DiscoveryService['getProviders']>[number];
export type Class = { readonly name: string; readonly prototype: object };

/** The class behind a provider, also one made by a factory or given as a value, whatever that value is. */
export function classOf(wrapper: Wrapper): Class | undefined {
  try {
    const instance: unknown = wrapper.instance;
    const type: unknown =
      typeof instance === 'object' && instance !== null
        ? Reflect.getPrototypeOf(instance)?.constructor
        : // A request-scoped factory has made none yet; what it will make is known by its token.
          wrapper.isFactory && typeof wrapper.token === 'function'
          ? wrapper.token
          : wrapper.metatype;
    return typeof type === 'function' && typeof type.prototype === 'object' && type.prototype !== null
      ? type
      : undefined;
  } catch {
    // A value that may not be looked at (a strict mock, a revoked proxy) is of no class.
    return undefined;
  }
}

/** Name of the module that provides it. */
export function moduleOf(wrapper: Wrapper): string {
  return wrapper.host?.name ?? 'a module without a name';
}

/** Of the class and those it extends, the nearest first. */
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
