import { isDeepStrictEqual } from 'node:util';
import { type ModuleMetadata, type Provider } from '@nestjs/common';
import { Log } from '../contract/log.js';
import { getDispatcherToken } from '../decorators/metadata.js';
import { Dispatcher, type DispatcherEngine } from '../dispatcher/dispatcher.js';
import { isKeyOf } from '../engine/keys.js';
import { collectFaults } from '../options/check.js';
import {
  resolveDispatcherOptions,
  type DispatcherOptions,
  type ResolvedDispatcherOptions,
} from '../options/dispatcher-options.js';

interface Registration {
  readonly resolved: ResolvedDispatcherOptions;
  readonly dispatcher: Dispatcher;
}

/**
 * The dispatchers of the application by name. A name that is registered in several modules is one dispatcher. Mistakes in
 * registrations are collected for the `BootstrapError`.
 */
export class DispatcherRegistry {
  readonly faults: string[] = [];
  private readonly logger = new Log('QueueModule');
  private readonly registered = new Map<string, Registration>();

  constructor(
    private readonly engine: DispatcherEngine,
    private readonly prefix: string,
  ) {}

  /** Adds a dispatcher, or returns the existing one with this name. Undefined if its options are invalid. */
  register(given: DispatcherOptions): Dispatcher | undefined {
    const { value: resolved, faults } = collectFaults((report) =>
      resolveDispatcherOptions(given, (key) => isKeyOf(this.prefix, key), report),
    );
    this.faults.push(...faults);
    if (faults.length > 0) return undefined;
    const { name } = resolved;
    const first = this.registered.get(name);
    if (first === undefined) {
      const dispatcher = new Dispatcher(this.engine, resolved);
      this.registered.set(name, { resolved, dispatcher });
      return dispatcher;
    }
    if (!isDeepStrictEqual(first.resolved, resolved)) {
      this.faults.push(
        `the dispatcher '${name}' is registered twice with different options; give one of them another name`,
      );
    }
    return first.dispatcher;
  }

  get names(): readonly string[] {
    return [...this.registered.keys()];
  }

  start(): void {
    for (const { dispatcher } of this.registered.values()) dispatcher.start();
    if (this.registered.size > 0) this.logger.log(`dispatchers started: ${this.names.join(', ')}`);
  }

  /** Stops all dispatchers. They may be started again. Never rejects. */
  async stop(): Promise<void> {
    await Promise.all([...this.registered.values()].map(({ dispatcher }) => dispatcher.stop()));
  }

  /** Completes the observables of all dispatchers. */
  close(): void {
    for (const { dispatcher } of this.registered.values()) dispatcher.close();
  }
}

type Inject = NonNullable<Extract<Provider, { useFactory: unknown }>['inject']>;

/**
 * `QueueModule.registerDispatcherAsync(options)`. The name is not part of `useFactory`, because the injection token depends on
 * it.
 */
export interface DispatcherAsyncOptions extends Pick<ModuleMetadata, 'imports'> {
  /** For `@InjectDispatcher` and the log. */
  readonly name: string;
  /** Providers that `useFactory` is called with. @default none */
  readonly inject?: Inject;
  /** Creates the other options; may be asynchronous. */
  readonly useFactory: (
    ...injected: any[]
  ) => Omit<DispatcherOptions, 'name'> | Promise<Omit<DispatcherOptions, 'name'>>;
}

/** Turns these registrations into registrations with a factory. */
export function withOptions(dispatchers: readonly DispatcherOptions[]): DispatcherAsyncOptions[] {
  // A value that is not an object is reported at startup, with all other mistakes.
  return dispatchers.map((options) => ({
    name: (options as DispatcherOptions | null)?.name ?? options?.delayedKey,
    useFactory: () => options,
  }));
}

/** The providers of these registrations, and the tokens that users inject. */
export function dispatcherProviders(dispatchers: readonly DispatcherAsyncOptions[]): {
  readonly providers: Provider[];
  readonly tokens: string[];
} {
  const providers: Provider[] = [];
  // Each registration has its own token, so that a name that is registered twice in one call is noticed.
  const registered = new Map<string, symbol[]>();
  for (const { name, inject = [], useFactory } of dispatchers) {
    const handle = getDispatcherToken(name);
    const token = Symbol(handle);
    registered.set(handle, [...(registered.get(handle) ?? []), token]);
    providers.push({
      provide: token,
      inject: [DispatcherRegistry, ...inject],
      useFactory: async (registry: DispatcherRegistry, ...injected: unknown[]) => {
        const options = (await useFactory(...injected)) as DispatcherOptions;
        return registry.register(typeof name === 'string' ? named(options, name) : options);
      },
    });
  }
  for (const [handle, tokens] of registered) {
    providers.push({ provide: handle, inject: tokens, useFactory: (dispatcher: unknown) => dispatcher });
  }
  return { providers, tokens: [...registered.keys()] };
}

/** A value that is not an object is returned unchanged, so that the error shows it. */
function named(options: DispatcherOptions, name: string): DispatcherOptions {
  return typeof options === 'object' && options !== null ? { ...options, name } : options;
}
