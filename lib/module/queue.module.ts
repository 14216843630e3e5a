import { Module, type DynamicModule, type ModuleMetadata, type Provider, type Type } from '@nestjs/common';
import { QUEUE_HANDLES, ROOT_OPTIONS, namedRootToken, queueToken } from '../decorators/metadata.js';
import { BootstrapError, InvalidOptionError } from '../errors.js';
import { QueueEvents } from '../events/queue-events.js';
import { QueueInspector } from '../inspect/queue-inspector.js';
import type { DispatcherOptions } from '../options/dispatcher-options.js';
import { hasFields, unknownField } from '../job/fields.js';
import { copyFields } from '../options/check.js';
import {
  MODULE_OPTION_NAMES,
  QUEUE_OPTION_NAMES,
  type QueueModuleOptions,
  type QueueOptions,
} from '../options/module-options.js';
import type { NamedModuleOptions } from '../options/named-options.js';
import { QueueProducer } from '../producer/queue-producer.js';
import { QueueCore, QueueCoreModule } from './core.module.js';
import { dispatcherProviders, withOptions, type DispatcherAsyncOptions } from './dispatcher.registry.js';
import { QueueRegistry } from './queue.registry.js';
import { QueueRuntime } from './queue.runtime.js';

type Inject = NonNullable<Extract<Provider, { useFactory: unknown }>['inject']>;

/** The modules in which `QueueProducer`, `QueueEvents`, `QueueInspector` and `QueueRuntime` can be injected. */
export interface VisibilityOptions {
  /** True: in all modules. False: only in modules that import the module that `forRoot` returned. @default true */
  readonly isGlobal?: boolean;
}

/** A class that creates the options, for `useClass` and `useExisting`. */
export interface QueueModuleOptionsFactory {
  /** Called once, when the application starts. */
  createQueueModuleOptions(): QueueModuleOptions | Promise<QueueModuleOptions>;
}

/** `QueueModule.forRootAsync(options)`: one of `useFactory`, `useClass` and `useExisting`. */
export interface QueueModuleAsyncOptions extends VisibilityOptions, Pick<ModuleMetadata, 'imports'> {
  /** Providers that `useFactory` is called with. @default none */
  readonly inject?: Inject;
  /** Creates the options; may be asynchronous. @default none */
  readonly useFactory?: (...injected: any[]) => QueueModuleOptions | Promise<QueueModuleOptions>;
  /** A class that creates the options. Nest instantiates it in this module. @default none */
  readonly useClass?: Type<QueueModuleOptionsFactory>;
  /** A provider of one of `imports` that creates them. @default none */
  readonly useExisting?: Type<QueueModuleOptionsFactory> | string | symbol;
}

/** A class that creates the options of a configuration with a key, for `useClass` and `useExisting`. */
export interface NamedModuleOptionsFactory {
  /** Called once, when the application starts. */
  createQueueModuleOptions(): NamedModuleOptions | Promise<NamedModuleOptions>;
}

/** `QueueModule.forRootAsync(key, options)`: one of `useFactory`, `useClass` and `useExisting`. */
export interface NamedModuleAsyncOptions extends VisibilityOptions, Pick<ModuleMetadata, 'imports'> {
  /** Providers that `useFactory` is called with. @default none */
  readonly inject?: Inject;
  /** Creates the options; may be asynchronous. @default none */
  readonly useFactory?: (...injected: any[]) => NamedModuleOptions | Promise<NamedModuleOptions>;
  /** A class that creates them; it is instantiated here. @default none */
  readonly useClass?: Type<NamedModuleOptionsFactory>;
  /** A provider of one of `imports` that creates them. @default none */
  readonly useExisting?: Type<NamedModuleOptionsFactory> | string | symbol;
}

/** Which of several configurations a queue belongs to. */
export interface ConfigKeyOption {
  /** The key that was passed to `forRoot`. @default the configuration without a key */
  readonly configKey?: string | undefined;
}

/** A class that creates the options of queues, for `useClass` and `useExisting` of `registerQueueAsync`. */
export interface QueueOptionsFactory {
  /** Called once for each registration, when the application starts, with the name of its queue. */
  createQueueOptions(name: string): Omit<QueueOptions, 'name'> | Promise<Omit<QueueOptions, 'name'>>;
}

/**
 * `QueueModule.registerQueueAsync(options)`: one of `useFactory`, `useClass` and `useExisting`. Name and key are outside of them,
 * because the injection tokens depend on them.
 */
export interface QueueAsyncOptions
  extends Pick<QueueOptions, 'name'>, ConfigKeyOption, Pick<ModuleMetadata, 'imports'> {
  /** Providers that `useFactory` is called with. @default none */
  readonly inject?: Inject;
  /** Creates the other options; may be asynchronous. @default none */
  readonly useFactory?: (
    ...injected: any[]
  ) => Omit<QueueOptions, 'name'> | Promise<Omit<QueueOptions, 'name'>>;
  /** A class that creates them. Nest instantiates it in this module. @default none */
  readonly useClass?: Type<QueueOptionsFactory>;
  /** A provider of one of `imports` that creates them. @default none */
  readonly useExisting?: Type<QueueOptionsFactory> | string | symbol;
}

/** Provides the options to the core module, even if `isGlobal` is false. */
@Module({})
class QueueRootModule {}

/**
 * The queues of an application: `forRoot` once in the root module, `registerQueue` wherever a queue is used.
 *
 * @example
 * ;@Module({
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
   * Sets the options of this process and the defaults for all queues. Provides `QueueProducer`, `QueueEvents`, `QueueInspector`
   * and `QueueRuntime`. Nothing connects before the application starts. All invalid options are then reported in one
   * `BootstrapError`.
   *
   * @example
   * QueueModule.forRoot({ connection: process.env.REDIS_URL, role: 'producer' })
   */
  static forRoot(options?: QueueModuleOptions & VisibilityOptions): DynamicModule;
  /**
   * Adds a configuration with a key. Queues with this `configKey` are in another Redis, or under another prefix. The
   * configuration has a connection, a prefix and defaults for its queues. Options of the process belong in `forRoot()` without a
   * key.
   *
   * @example
   * QueueModule.forRoot({ connection: 'redis://localhost:6379' }),
   * QueueModule.forRoot('reports', { connection: 'redis://localhost:6380' }),
   * QueueModule.registerQueue({ name: 'monthly', configKey: 'reports' })
   */
  static forRoot(key: string, options: NamedModuleOptions & VisibilityOptions): DynamicModule;
  static forRoot(...args: [options?: unknown] | [key: string, options: unknown]): DynamicModule {
    const { token, rest, place } = rootOf(args);
    // A value that is not an object is reported at bootstrap, with all other mistakes.
    if (!hasFields(rest)) return root(token, true, [], [{ provide: token, useValue: rest }]);
    const { isGlobal, ...given } = copyFields(rest, place, [...MODULE_OPTION_NAMES, 'isGlobal']);
    return root(token, visibility(isGlobal, place), [], [{ provide: token, useValue: given }]);
  }

  /**
   * Like `forRoot`, with options that are only known at startup.
   *
   * @example
   * QueueModule.forRootAsync({
   *   inject: [ConfigService],
   *   useFactory: (config: ConfigService) => ({ connection: config.getOrThrow<string>('REDIS_URL') }),
   * })
   */
  static forRootAsync(options: QueueModuleAsyncOptions): DynamicModule;
  /**
   * Adds a configuration with a key, with options that are only known at startup.
   *
   * @example
   * QueueModule.forRootAsync('reports', {
   *   inject: [ConfigService],
   *   useFactory: (config: ConfigService) => ({ connection: config.getOrThrow<string>('REPORTS_REDIS_URL') }),
   * })
   */
  static forRootAsync(key: string, options: NamedModuleAsyncOptions): DynamicModule;
  static forRootAsync(...args: [options: unknown] | [key: string, options: unknown]): DynamicModule {
    const { token, rest, place } = rootOf(args, 'forRootAsync');
    const options = asyncOptions<QueueModuleAsyncOptions>(rest, place, ASYNC_ROOT_FIELDS);
    const isGlobal = visibility(options.isGlobal, place);
    return root(token, isGlobal, options.imports ?? [], asyncRootProviders(token, place, options));
  }

  /**
   * Registers queues, and makes their handles injectable with `@InjectQueue` in the importing module. A queue may be registered in
   * several modules. One of them sets its options; a registration with only a name refers to them, in any order. All modules get
   * the same handle.
   *
   * @example
   * QueueModule.registerQueue({ name: 'email', defaults: { attempts: 5 } }, { name: 'reports' })
   *
   * @example
   * // In another module that adds jobs to it:
   * QueueModule.registerQueue({ name: 'email' })
   */
  static registerQueue(...queues: (QueueOptions & ConfigKeyOption)[]): DynamicModule {
    return registration(
      queues.map((queue: unknown) => {
        if (!hasFields(queue)) return { name: undefined, useFactory: () => queue };
        const known = [...QUEUE_OPTION_NAMES, 'configKey'];
        const { configKey, ...options } = copyFields(queue, 'registerQueue()', known);
        return { name: options['name'], configKey, useFactory: () => options };
      }),
    );
  }

  /**
   * Like `registerQueue`, with options that are only known at startup.
   *
   * @example
   * QueueModule.registerQueueAsync({
   *   name: 'email',
   *   inject: [ConfigService],
   *   useFactory: (config: ConfigService) => ({ defaults: { attempts: config.get('EMAIL_ATTEMPTS', 5) } }),
   * })
   */
  static registerQueueAsync(...queues: QueueAsyncOptions[]): DynamicModule {
    const place = 'registerQueueAsync()';
    return registration(
      queues.map((queue) => {
        const given = asyncOptions<QueueAsyncOptions>(queue, place, ASYNC_QUEUE_FIELDS);
        const { name, configKey, imports = [] } = given;
        const way = wayOf<QueueOptionsFactory>(given, place, 'createQueueOptions', name);
        return { name, configKey, imports, ...way };
      }),
    );
  }

  /**
   * Registers dispatchers for queues that other programs use with their own Redis commands. Each dispatcher moves due tasks from
   * a sorted set to a list, over the connection of `forRoot`, while the workers of the application run (not with the role
   * `producer`). Not possible with `connection: 'memory'`. Makes the dispatchers injectable with `@InjectDispatcher` in the
   * importing module.
   *
   * @example
   * QueueModule.registerDispatcher({ name: 'mails', delayedKey: 'mails:delayed', readyKey: 'mails:ready' })
   */
  static registerDispatcher(...dispatchers: DispatcherOptions[]): DynamicModule {
    return QueueModule.registerDispatcherAsync(...withOptions(dispatchers));
  }

  /**
   * Like `registerDispatcher`, with options that are only known at startup.
   *
   * @example
   * QueueModule.registerDispatcherAsync({
   *   name: 'mails',
   *   inject: [ConfigService],
   *   useFactory: (config: ConfigService) => ({ delayedKey: config.getOrThrow('DELAYED'), readyKey: 'mails:ready' }),
   * })
   */
  static registerDispatcherAsync(...dispatchers: DispatcherAsyncOptions[]): DynamicModule {
    const given = dispatchers.map((dispatcher) =>
      asyncOptions<DispatcherAsyncOptions>(dispatcher, 'registerDispatcherAsync()', [
        ...ASYNC_FIELDS,
        'name',
      ]),
    );
    const { providers, tokens } = dispatcherProviders(given);
    const imports = [QueueCoreModule, ...given.flatMap((one) => one.imports ?? [])];
    return { module: QueueModule, imports, providers, exports: tokens };
  }
}

/** @internal The providers that users inject. */
export const coreViews = [
  { provide: QueueRuntime, inject: [QueueCore], useFactory: (core: QueueCore) => core.runtime },
  { provide: QueueProducer, inject: [QueueCore], useFactory: (core: QueueCore) => core.producer },
  { provide: QueueEvents, inject: [QueueCore], useFactory: (core: QueueCore) => core.events },
  { provide: QueueInspector, inject: [QueueCore], useFactory: (core: QueueCore) => core.inspector },
];

const ASYNC_FIELDS = ['imports', 'inject', 'useFactory'];
const WAYS = [...ASYNC_FIELDS, 'useClass', 'useExisting'];
const ASYNC_QUEUE_FIELDS = [...WAYS, 'name', 'configKey'];
const ASYNC_ROOT_FIELDS = [...WAYS, 'isGlobal'];

/** `forRoot(options)` and `forRoot(key, options)`. */
function rootOf(
  args: readonly unknown[],
  method = 'forRoot',
): { readonly token: string; readonly rest: unknown; readonly place: string } {
  const [first, second] = args;
  const isNamed = args.length > 1 || typeof first === 'string';
  if (!isNamed) return { token: ROOT_OPTIONS, rest: first === undefined ? {} : first, place: `${method}()` };
  // Null, not undefined, which would mean that there is no `forRoot`.
  return { token: namedRootToken(first), rest: second ?? null, place: `${method}('${String(first)}')` };
}

/** Checks the options of an asynchronous registration. Providers depend on them, so mistakes throw at once. */
function asyncOptions<Options extends object>(
  value: unknown,
  place: string,
  known: readonly string[],
): Options {
  const options = copyFields(value, place, known);
  for (const name of Object.keys(options)) if (!known.includes(name)) throw unknownField(place, name, known);
  for (const name of ['imports', 'inject']) {
    const list = options[name];
    if (list !== undefined && !Array.isArray(list))
      throw new InvalidOptionError(`${place}.${name}`, 'a list', list);
  }
  const { useFactory } = options;
  if (useFactory !== undefined ? typeof useFactory !== 'function' : !known.includes('useClass'))
    throw new InvalidOptionError(`${place}.useFactory`, 'a function that returns the options', useFactory);
  return options as Options;
}

function visibility(isGlobal: unknown, place: string): boolean {
  if (isGlobal === undefined || typeof isGlobal === 'boolean') return isGlobal ?? true;
  throw new InvalidOptionError(`${place}.isGlobal`, 'true or false', isGlobal);
}

function root(
  token: string,
  isGlobal: boolean,
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

function asyncRootProviders(token: string, place: string, options: QueueModuleAsyncOptions): Provider[] {
  const way = wayOf<QueueModuleOptionsFactory>(options, place, 'createQueueModuleOptions');
  const { inject, useFactory, providers } = way;
  const maker = options.useFactory ? 'useFactory' : 'createQueueModuleOptions()';
  return [
    ...providers,
    {
      provide: token,
      inject,
      useFactory: async (...injected: unknown[]) => {
        const made = await useFactory(...injected);
        if (typeof made === 'object' && made !== null) return made;
        // Undefined would mean that there is no `forRoot`, and a check of other values could not name the factory.
        const source = `the result of ${maker} of ${place}`;
        throw new BootstrapError([new InvalidOptionError(source, 'an object of options', made).message]);
      },
    },
  ];
}

/** One way to create options: what to call, with which providers, and the providers to add for it. */
interface Way {
  readonly inject: Inject;
  readonly useFactory: (...injected: any[]) => unknown;
  readonly providers: Provider[];
}

/**
 * The one of `useFactory`, `useClass` and `useExisting` that is given.
 *
 * @param method of a factory class; it is called with `args`.
 */
function wayOf<Factory extends object>(
  given: {
    readonly inject?: Inject;
    readonly useFactory?: Way['useFactory'];
    readonly useClass?: Type<Factory>;
    readonly useExisting?: Type<Factory> | string | symbol;
  },
  place: string,
  method: keyof Factory & string,
  ...args: unknown[]
): Way {
  const { inject = [], useFactory, useClass, useExisting } = given;
  const ways = [useFactory, useClass, useExisting].filter((way) => way !== undefined);
  if (ways.length !== 1) {
    throw new BootstrapError([
      `QueueModule.${place} needs one of useFactory, useClass and useExisting, got ${ways.length}`,
    ]);
  }
  if (useFactory) return { inject, useFactory, providers: [] };
  const providers = useClass ? [{ provide: useClass, useClass }] : [];
  const create = (factory: Factory) => {
    const make = factory[method];
    if (typeof make === 'function') return make.apply(factory, args) as unknown;
    const source = `${place}.${useClass ? 'useClass' : 'useExisting'}`;
    const message = new InvalidOptionError(source, `a class with the method ${method}()`, factory).message;
    throw new BootstrapError([message]);
  };
  return { inject: [useClass ?? useExisting!], useFactory: create, providers };
}

function rootToken(configKey: unknown): string {
  return configKey === undefined ? ROOT_OPTIONS : namedRootToken(configKey);
}

/** A registration before its name and key are checked. */
interface GivenQueue extends Pick<QueueAsyncOptions, 'imports' | 'inject'> {
  readonly name: unknown;
  readonly configKey?: unknown;
  readonly useFactory: (...injected: any[]) => unknown;
  /** Providers that `inject` needs in addition to the imports. */
  readonly providers?: readonly Provider[];
}

function registration(queues: readonly GivenQueue[]): DynamicModule {
  const providers = queues.flatMap((queue) => queue.providers ?? []);
  // Each registration has its own token, so that a name that is registered twice in one call is noticed.
  const registered = new Map<unknown, symbol[]>();
  for (const { name, configKey, inject = [], useFactory } of queues) {
    const token = Symbol(queueToken(name));
    registered.set(name, [...(registered.get(name) ?? []), token]);
    providers.push({
      provide: token,
      inject: [QueueRegistry, { token: rootToken(configKey), optional: true }, ...inject],
      useFactory: async (registry: QueueRegistry, config: unknown, ...injected: unknown[]) => {
        registry.register(name, await useFactory(...injected), { key: configKey, given: config });
        return name;
      },
    });
  }
  for (const [name, tokens] of registered) {
    providers.push({
      provide: queueToken(name),
      inject: [QueueRegistry, QUEUE_HANDLES, ...tokens],
      useFactory: (registry: QueueRegistry, handleOf: (queue: string) => unknown) =>
        typeof name === 'string' && registry.has(name) ? handleOf(name) : undefined,
    });
  }
  return {
    module: QueueModule,
    imports: [QueueCoreModule, ...queues.flatMap((queue) => queue.imports ?? [])],
    providers,
    exports: [...registered.keys()].map(queueToken),
  };
}
