import { ModuleRef } from '@nestjs/core';
import type { Log } from '../../contract/log.js';
import { messageOf, stackOf } from '../../errors/thrown.js';
import type { Wrapper } from './classes.js';
import type { FoundProcessor } from './processor.explorer.js';

/** A provider that must stay usable until the drain is over. */
export type DrainTarget = Pick<FoundProcessor, 'className' | 'instance' | 'isScoped' | 'wrapper'>;

/** The drain of one application, for the hooks on its providers. */
export class Drain {
  private state: 'ahead' | 'begun' | 'over' = 'ahead';

  /** @param run Never rejects; the first call starts the drain of all pools, and all calls return the same promise. */
  constructor(private run: () => Promise<void>) {}

  get hasBegun(): boolean {
    return this.state === 'begun';
  }

  get isOver(): boolean {
    return this.state === 'over';
  }

  start(): Promise<void> {
    if (this.state === 'ahead') this.state = 'begun';
    return this.run();
  }

  /** The application is closed. Providers that outlive it must not keep it alive. */
  end(): void {
    this.state = 'over';
    this.run = () => Promise.resolve();
  }
}

/**
 * Starts the drain before any dependency of a processor or listener is destroyed. Nest destroys modules from dependents to
 * dependencies, and a hook in our global module would run last, after the application's database has been closed. So the hook is set on
 * the providers themselves; their own hook runs after the drain.
 */
export function drainBeforeDestroy(targets: readonly DrainTarget[], drain: Drain, logger: Log): void {
  const hook = (instance: unknown, name: string) => {
    if (typeof instance === 'object' && instance !== null) addHook(instance as Hooked, name, drain, logger);
  };
  for (const { wrapper, className, instance, isScoped } of targets) {
    for (const single of singlesOfSameModule(wrapper).filter(hasHook)) {
      hook(single.instance, String(single.name));
    }
    // Nest calls no hooks on instances created for a job, so their module gets the hook. So does its `ModuleRef`, which no other
    // application shares: it starts the drain in the step in which a shared value asks whether it has begun.
    const { host } = wrapper;
    if (isScoped && host) {
      hook(host.instance, host.name);
      hook(host.getProviderByKey<ModuleRef>(ModuleRef).instance, host.name);
    } else hook(instance, className);
  }
}

interface Hooked {
  onModuleDestroy?: unknown;
}

/** The drains of the instances that have the hook. A value may be a provider of several applications. */
const drains = new WeakMap<object, Set<Drain>>();

function addHook(instance: Hooked, name: string, drain: Drain, logger: Log): void {
  const known = drains.get(instance);
  if (known) return void known.add(drain);
  const its = new Set([drain]);
  const own = instance.onModuleDestroy;
  const value = async () => {
    await drained(its);
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
    drains.set(instance, its);
  } catch {
    logger.warn(
      `${name} is frozen, so the shutdown cannot wait for its jobs before it closes what they use; do not freeze it`,
    );
  }
}

async function drained(its: Set<Drain>): Promise<void> {
  for (const drain of its) if (drain.isOver) its.delete(drain);
  const [first] = its;
  if (its.size < 2) return first?.start();
  // The hook does not know which application shuts down. In the next turn, the processors of that application have started its drain.
  await new Promise((resolve) => setImmediate(resolve));
  await Promise.all([...its].filter((drain) => drain.hasBegun).map((drain) => drain.start()));
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
