import type { Log } from '../../contract/log.js';
import { Injector } from '@nestjs/core/injector/injector.js';
import { messageOf, stackOf } from '../../errors/thrown.js';
import type { Wrapper } from './classes.js';
import type { FoundProcessor } from './processor.explorer.js';

/** A provider that is used until the drain is over. */
export type DrainTarget = Pick<FoundProcessor, 'className' | 'instance' | 'isScoped' | 'wrapper'>;

/**
 * Starts the drain before any dependency of a processor or listener is destroyed. Nest destroys modules from dependents to
 * dependencies, and a hook in our global module would run last, after the application's database has been closed. So the hook is set on
 * the providers themselves; their own hook runs after the drain.
 *
 * @param drain Never rejects; the first call starts it for all pools, and all calls return the same promise.
 */
export function drainBeforeDestroy(
  targets: readonly DrainTarget[],
  drain: () => Promise<void>,
  logger: Log,
): void {
  const hooked = new Set<object>();
  const hook = (instance: unknown, name: string) => {
    if (typeof instance !== 'object' || instance === null || hooked.has(instance)) return;
    hooked.add(instance);
    addHook(instance as Hooked, name, drain, logger);
  };
  for (const { wrapper, className, instance, isScoped } of targets) {
    for (const injected of injectedOfSameModule(wrapper).filter(hasHook)) {
      hook(injected.instance, String(injected.name));
    }
    // Nest calls no hooks of instances created for a job, so their module gets the hook.
    if (isScoped) hook(wrapper.host?.instance, wrapper.host?.name ?? className);
    else hook(instance, className);
  }
}

interface Hooked {
  onModuleDestroy?: unknown;
}

function addHook(instance: Hooked, name: string, drain: () => Promise<void>, logger: Log): void {
  const own = instance.onModuleDestroy;
  const value = async () => {
    await drain();
    if (typeof own !== 'function') return;
    try {
      await own.call(instance);
    } catch (error) {
      // Passed on, it would make Nest 11 skip every later hook, and the connections would stay open.
      logger.error(`${name}.onModuleDestroy: ${messageOf(error)}`, stackOf(error));
    }
  };
  try {
    Object.defineProperty(instance, 'onModuleDestroy', { value, configurable: true, writable: true });
  } catch {
    logger.warn(
      `${name} is frozen, so jobs may still be running when what they use is closed; do not freeze it`,
    );
  }
}

function hasHook({ instance }: Wrapper): boolean {
  return typeof (instance as Hooked | null | undefined)?.onModuleDestroy === 'function';
}

const reader = new Injector();

/**
 * The singleton dependencies of a provider within its own module, direct and indirect. They are destroyed in the same step of the
 * shutdown, in which Nest 11 keeps no order.
 */
function injectedOfSameModule(wrapper: Wrapper, seen = new Set<Wrapper>()): Wrapper[] {
  seen.add(wrapper);
  return injectedBy(wrapper)
    .filter((one) => one !== undefined && one.host === wrapper.host && !seen.has(one))
    .flatMap((one) => {
      const isSingle = !one!.isTransient && one!.isDependencyTreeStatic();
      return [...(isSingle ? [one!] : []), ...injectedOfSameModule(one!, seen)];
    });
}

function injectedBy(wrapper: Wrapper): (Wrapper | undefined)[] {
  // Nest 11 resolves request-scoped providers only at the first request.
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
