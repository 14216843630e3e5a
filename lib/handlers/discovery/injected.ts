import { Injector } from '@nestjs/core/injector/injector.js';
import type { Wrapper } from './classes.js';

const reader = new Injector();

/**
 * What a provider injects of its own module, itself or through what it injects, that exists once: those are destroyed in the same
 * step of the shutdown, where Nest 11 keeps no order.
 */
export function injectedOfSameModule(wrapper: Wrapper, seen = new Set<Wrapper>()): Wrapper[] {
  seen.add(wrapper);
  return injectedBy(wrapper)
    .filter((one) => one !== undefined && one.host === wrapper.host && !seen.has(one))
    .flatMap((one) => {
      const isSingle = !one!.isTransient && one!.isDependencyTreeStatic();
      return [...(isSingle ? [one!] : []), ...injectedOfSameModule(one!, seen)];
    });
}

function injectedBy(wrapper: Wrapper): (Wrapper | undefined)[] {
  // Nest 11 has not looked at what is made for each request before the first of them.
  const constructed = wrapper.getCtorMetadata() ?? tokensOf(wrapper).map((token) => lookUp(wrapper, token));
  const properties = (wrapper.getPropertiesMetadata() ?? []).map((property) => property.wrapper);
  // There may be holes in it.
  return [...constructed, ...properties, ...(wrapper.getEnhancersMetadata() ?? [])];
}

function tokensOf({ inject, metatype }: Wrapper): readonly unknown[] {
  if (inject) return inject;
  if (typeof metatype !== 'function') return [];
  const properties = reader.reflectProperties(metatype as never).map(({ name }) => name);
  return [...reader.reflectConstructorParams(metatype as never), ...properties];
}

function lookUp({ host }: Wrapper, token: unknown): Wrapper | undefined {
  const { forwardRef, token: named } = (token ?? {}) as { forwardRef?: () => unknown; token?: unknown };
  return host?.providers.get((forwardRef?.() ?? named ?? token) as never);
}
