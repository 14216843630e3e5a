import { Module, type DynamicModule, type ModuleMetadata, type Provider, type Type } from '@nestjs/common';
import { QUEUE_HANDLES, ROOT_OPTIONS, namedRootToken, queueToken } from '../decorators/metadata.js';
import { BootstrapError } from '../errors.js';
import { QueueEvents } from '../events/queue-events.js';
import { QueueInspector } from '../inspect/queue-inspector.js';
import type { DispatcherOptions } from '../options/dispatcher-options.js';
import type { QueueModuleOptions, QueueOptions } from '../options/module-options.js';
import type { NamedModuleOptions } from '../options/named-options.js';
import { QueueProducer } from '../producer/queue-producer.js';
import { QueueCore, QueueCoreModule } from './core.module.js';
import { dispatcherProviders, withOptions, type DispatcherAsyncOptions } from './dispatcher.registry.js';
import { QueueRegistry } from './queue.registry.js';
import { QueueRuntime } from './queue.runtime.js';

type Inject = NonNullable<Extract<Provider, { useFactory: unknown }>['inject']>;

/** Where `QueueProducer`, `QueueEvents`, `QueueInspector` and `QueueRuntime` can be injected. */
export interface VisibilityOptions {
  /** In all modules; otherwise only in those that import the module `forRoot` returned. @default true */
  readonly isGlobal?: boolean;
}

/** A class that makes the options, for `useClass` and `useExisting`. */
export interface QueueModuleOptionsFactory {
  /** Called once, when the application starts. */
  createQueueModuleOptions(): QueueModuleOptions | Promise<QueueModuleOptions>;
}

/** `QueueModule.forRootAsync(options)`: one of `useFactory`, `useClass` and `useExisting`. */
export interface QueueModuleAsyncOptions extends VisibilityOptions, Pick<ModuleMetadata, 'imports'> {
  /** What `useFactory` is called with. @default nothing */
  readonly inject?: Inject;
  /** Makes the options, at once or later. @default none */
  readonly useFactory?: (...injected: any[]) => QueueModuleOptions | Promise<QueueModuleOptions>;
  /** A class that makes them, provided for it here. @default none */
  readonly useClass?: Type<QueueModuleOptionsFactory>;
  /** A provider that makes them, of one of `imports`. @default none */
  readonly useExisting?: Type<QueueModuleOptionsFactory> | string | symbol;
}

/** A class that makes the options of a configuration with a key, for `useClass` and `useExisting`. */
export interface NamedModuleOptionsFactory {
  /** Called once, when the application starts. */
  createQueueModuleOptions(): NamedModuleOptions | Promise<NamedModuleOptions>;
}

/** `QueueModule.forRootAsync(key, options)`: one of `useFactory`, `useClass` and `useExisting`. */
export interface NamedModuleAsyncOptions extends VisibilityOptions, Pick<ModuleMetadata, 'imports'> {
  /** What `useFactory` is called with. @default nothing */
  readonly inject?: Inject;
  /** Makes the options, at once or later. @default none */
  readonly useFactory?: (...injected: any[]) => NamedModuleOptions | Promise<NamedModuleOptions>;
  /** A class that makes them, provided for it here. @default none */
  readonly useClass?: Type<NamedModuleOptionsFactory>;
  /** A provider that makes them, of one of `imports`. @default none */
  readonly useExisting?: Type<NamedModuleOptionsFactory> | string | symbol;
}

/** Which of several configurations a queue belongs to. */
export interface ConfigKeyOption {
  /** The key that `forRoot` was given. @default the configuration without a key */
  readonly configKey?: string | undefined;
}

/** `QueueModule.registerQueueAsync(options)`. Name and key stand outside, since the injection tokens are made from them. */
export interface QueueAsyncOptions
  extends Pick<QueueOptions, 'name'>, ConfigKeyOption, Pick<ModuleMetadata, 'imports'> {
  /** What `useFactory` is called with. @default nothing */
  readonly inject?: Inject;
  /** Makes the other options, at once or later. */
  readonly useFactory: (
    ...injected: any[]
  ) => Omit<QueueOptions, 'name'> | Promise<Omit<QueueOptions, 'name'>>;
}

/** Carries the options to the core, whoever sees the rest. */
@Module({})
class QueueRootModule {}

/**
 * The queues of an application: `forRoot` once in the root module, `registerQueue` wherever a queue is used.
 *
 * @example
 * @Module({
 *   imports: [
 *     QueueModule.forRoot({ connection: 'redis://localhost:6379', prefix: 'shop' }),
 *     QueueModule.registerQueue({ name: 'email', defaults: { attempts: 5 } }),
 *   ],
 * })
 * export class AppModule {}
 */
@Module({})
export class QueueModule {
  /**
   * What holds for all queues of this process. It provides `QueueProducer`, `QueueEvents`, `QueueInspector` and
   * `QueueRuntime`. Nothing connects before the application starts; what is wrong with any option is said then in one
   * `BootstrapError`.
   *
   * @example
   * QueueModule.forRoot({ connection: process.env.REDIS_URL, role: 'producer' })
   */
  static forRoot(options?: QueueModuleOptions & VisibilityOptions): DynamicModule;
  /**
   * A further configuration: queues that name its key are in another Redis, or under another prefix. It may say where they are
   * and what they get; what holds for the whole process stands in `forRoot()` without a key.
   *
   * @example
   * QueueModule.forRoot({ connection: 'redis://localhost:6379' }),
   * QueueModule.forRoot('reports', { connection: 'redis://localhost:6380' }),
   * QueueModule.registerQueue({ name: 'monthly', configKey: 'reports' })
   */
  static forRoot(key: string, options: NamedModuleOptions & VisibilityOptions): DynamicModule;
  static forRoot(...args: [options?: unknown] | [key: string, options: unknown]): DynamicModule {
    const { token, rest } = rootOf(args);
    const { isGlobal, ...given } = (rest ?? {}) as QueueModuleOptions & VisibilityOptions;
    return root(token, isGlobal, [], [{ provide: token, useValue: given }]);
  }

  /**
   * The same with options that are known only at start.
   *
   * @example
   * QueueModule.forRootAsync({
   *   inject: [ConfigService],
   *   useFactory: (config: ConfigService) => ({ connection: config.getOrThrow<string>('REDIS_URL') }),
   * })
   */
  static forRootAsync(options: QueueModuleAsyncOptions): DynamicModule;
  /**
   * A further configuration with options that are known only at start.
   *
   * @example
   * QueueModule.forRootAsync('reports', {
   *   inject: [ConfigService],
   *   useFactory: (config: ConfigService) => ({ connection: config.getOrThrow<string>('REPORTS_REDIS_URL') }),
   * })
   */
  static forRootAsync(key: string, options: NamedModuleAsyncOptions): DynamicModule;
  static forRootAsync(...args: [options: unknown] | [key: string, options: unknown]): DynamicModule {
    const { token, rest } = rootOf(args);
    const options = rest as QueueModuleAsyncOptions;
    return root(token, options.isGlobal, options.imports ?? [], asyncRootProviders(token, options));
  }

  /**
   * Makes queues known and their handles injectable with `@InjectQueue` in the importing module. The same queue may be
   * registered in several modules, with the same options: it is one queue, and its handle is one object.
   *
   * @example
   * QueueModule.registerQueue({ name: 'email' }, { name: 'reports', defaults: { attempts: 1 } })
   */
  static registerQueue(...queues: (QueueOptions & ConfigKeyOption)[]): DynamicModule {
    return registration(
      queues.map(({ configKey, ...options }) => ({
        name: options.name,
        configKey,
        useFactory: () => options,
      })),
    );
  }

  /**
   * The same with options that are known only at start.
   *
   * @example
   * QueueModule.registerQueueAsync({
   *   name: 'email',
   *   inject: [ConfigService],
   *   useFactory: (config: ConfigService) => ({ defaults: { attempts: config.get('EMAIL_ATTEMPTS', 5) } }),
   * })
   */
  static registerQueueAsync(...queues: QueueAsyncOptions[]): DynamicModule {
    return registration(queues);
  }

  /**
   * Dispatchers for queues that other programs fill and empty with plain commands: each moves due tasks from a sorted set
   * to a list, over the connection of `forRoot`, for as long as the workers of the application run (none with the role
   * `producer`). Refused where `connection` is `'memory'`, which no other program can reach. Makes them injectable with
   * `@InjectDispatcher` in the importing module.
   *
   * @example
   * QueueModule.registerDispatcher({ name: 'mails', delayedKey: 'mails:delayed', readyKey: 'mails:ready' })
   */
  static registerDispatcher(...dispatchers: DispatcherOptions[]): DynamicModule {
    return QueueModule.registerDispatcherAsync(...withOptions(dispatchers));
  }

  /**
   * The same with options that are known only at start.
   *
   * @example
   * QueueModule.registerDispatcherAsync({
   *   name: 'mails',
   *   inject: [ConfigService],
   *   useFactory: (config: ConfigService) => ({ delayedKey: config.getOrThrow('DELAYED'), readyKey: 'mails:ready' }),
   * })
   */
  static registerDispatcherAsync(...dispatchers: DispatcherAsyncOptions[]): DynamicModule {
    const { providers, tokens } = dispatcherProviders(dispatchers);
    const imports = [QueueCoreModule, ...dispatchers.flatMap((one) => one.imports ?? [])];
    return { module: QueueModule, imports, providers, exports: tokens };
  }
}

/** @internal What users inject of the core. */
export const coreViews = [
  { provide: QueueRuntime, inject: [QueueCore], useFactory: (core: QueueCore) => core.runtime },
  { provide: QueueProducer, inject: [QueueCore], useFactory: (core: QueueCore) => core.producer },
  { provide: QueueEvents, inject: [QueueCore], useFactory: (core: QueueCore) => core.events },
  { provide: QueueInspector, inject: [QueueCore], useFactory: (core: QueueCore) => core.inspector },
];

/** `forRoot(options)` and `forRoot(key, options)`. */
function rootOf(args: readonly unknown[]): { token: string; rest: unknown } {
  const [first, second] = args;
  const isNamed = args.length > 1 || typeof first === 'string';
  return isNamed ? { token: namedRootToken(first), rest: second } : { token: ROOT_OPTIONS, rest: first };
}

function root(
  token: string,
  isGlobal = true,
  imports: NonNullable<ModuleMetadata['imports']>,
  providers: Provider[],
): DynamicModule {
  const options: DynamicModule = {
    module: QueueRootModule,
    global: true,
    imports,
    providers,
    exports: [token],
  };
  return {
    module: QueueModule,
    global: isGlobal,
    imports: [options, QueueCoreModule],
    providers: coreViews,
    exports: coreViews.map(({ provide }) => provide),
  };
}

function asyncRootProviders(
  token: string,
  { inject = [], useFactory, useClass, useExisting }: QueueModuleAsyncOptions,
): Provider[] {
  // Null, not undefined: a factory that forgot to return is told so, and not that forRoot is missing.
  const provideBy = (tokens: Inject, make: NonNullable<QueueModuleAsyncOptions['useFactory']>): Provider => ({
    provide: token,
    inject: tokens,
    useFactory: async (...injected: unknown[]) => (await make(...injected)) ?? null,
  });
  const ways = [useFactory, useClass, useExisting].filter((way) => way !== undefined);
  if (ways.length !== 1) {
    throw new BootstrapError([
      `QueueModule.forRootAsync() needs one of useFactory, useClass and useExisting, got ${ways.length}`,
    ]);
  }
  if (useFactory) return [provideBy(inject, useFactory)];
  if (useClass) return [{ provide: useClass, useClass }, provideBy([useClass], createOptions)];
  return [provideBy([useExisting!], createOptions)];
}

function createOptions(factory: QueueModuleOptionsFactory) {
  return factory.createQueueModuleOptions();
}

function rootToken(configKey: unknown): string {
  return configKey === undefined ? ROOT_OPTIONS : namedRootToken(configKey);
}

function registration(queues: readonly QueueAsyncOptions[]): DynamicModule {
  const providers: Provider[] = [];
  // A token for each registration, so that a name given twice in one call is seen twice; handles wait for all of them.
  const registered = new Map<string, symbol[]>();
  for (const { name, configKey, inject = [], useFactory } of queues) {
    const token = Symbol(queueToken(name));
    registered.set(name, [...(registered.get(name) ?? []), token]);
    providers.push({
      provide: token,
      inject: [QueueRegistry, { token: rootToken(configKey), optional: true }, ...inject],
      useFactory: async (registry: QueueRegistry, config: unknown, ...injected: unknown[]) => {
        registry.register({ ...(await useFactory(...injected)), name }, { key: configKey, given: config });
        return name;
      },
    });
  }
  for (const [name, tokens] of registered) {
    providers.push({
      provide: queueToken(name),
      inject: [QueueRegistry, QUEUE_HANDLES, ...tokens],
      useFactory: (registry: QueueRegistry, handleOf: (queue: string) => unknown) =>
        registry.has(name) ? handleOf(name) : undefined,
    });
  }
  return {
    module: QueueModule,
    imports: [QueueCoreModule, ...queues.flatMap((queue) => queue.imports ?? [])],
    providers,
    exports: [...registered.keys()].map(queueToken),
  };
}
