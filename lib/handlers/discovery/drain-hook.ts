import type { Log } from '../../contract/log.js';
import { messageOf, stackOf } from '../../errors/thrown.js';
import type { Wrapper } from './classes.js';
import type { FoundProcessor } from './processor.explorer.js';

/** A provider that must stay usable until the drain is over. */
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
    for (const single of singlesOfSameModule(wrapper).filter(hasHook)) {
      hook(single.instance, String(single.name));
    }
    // Nest calls no hooks on instances created for a job, so their module gets the hook.
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
      // If it were rethrown, Nest 11 would skip all later hooks, and the connections would stay open.
      logger.error(`${name}.onModuleDestroy: ${messageOf(error)}`, stackOf(error));
    }
  };
  try {
    Object.defineProperty(instance, 'onModuleDestroy', { value, configurable: true, writable: true });
  } catch {
    logger.warn(
      `${name} is frozen, so the shutdown cannot wait for its jobs before it closes what they use; do not freeze it`,
    );
  }
}

function hasHook({ instance }: Wrapper): boolean {
  return typeof (instance as Hooked | null | undefined)?.onModuleDestroy === 'function';
}

/**
 * The singletons of the same module. The shutdown destroys them in the same step. Within a step Nest 11 keeps no order, and Nest
 * 12 only knows the order of injected providers, not of those fetched with `ModuleRef.get`.
 */
function singlesOfSameModule({ host }: Wrapper): Wrapper[] {
  const providers = [...(host?.providers.values() ?? [])] as Wrapper[];
  return providers.filter((one) => !one.isTransient && one.isDependencyTreeStatic());
}
