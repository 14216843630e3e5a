import { limitsOf } from '../contract/limits.js';
import { isDeepStrictEqual, inspect } from 'node:util';
import { InvalidOptionError, QueueConflictError, UnknownQueueError } from '../errors.js';
import { show } from '../errors/show.js';
import { hasFields } from '../job/fields.js';
import { checkQueueName } from '../job/job-id.js';
import { quoted } from '../job/text.js';
import { collectFaults, copyFields, rule } from '../options/check.js';
import {
  checkPlainName,
  QUEUE_OPTION_NAMES,
  resolveQueueOptions,
  type QueueOptions,
  type ResolvedModuleOptions,
  type ResolvedQueueOptions,
  type QueueModuleOptions,
} from '../options/module-options.js';
import type { ConnectionOption } from '../options/connection.js';
import { resolveNamedOptions } from '../options/named-options.js';
import type { DiscoveryService } from '@nestjs/core';
import { keyOfNamedRoot, ROOT_OPTIONS } from '../decorators/metadata.js';
import type { QueueEngine, QueueLimits } from '../contract/engine.js';
import type { EndWait } from '../producer/add-and-wait.js';

/**
 * Replaces the store of a whole application without changing the application. A global module provides it under `SUBSTITUTE`, as
 * `godwit/testing` does.
 */
export interface Substitute {
  /** Replaces the options of `forRoot`. Undefined if there is no `forRoot`. */
  options(given: QueueModuleOptions | undefined): QueueModuleOptions;
  /** Replaces the options of `forRoot` with a key. */
  namedOptions(given: unknown): unknown;
  createEngine(limitsOf: (queue: string) => QueueLimits): QueueEngine;
  /** A wait for the end of a job that is about to be added. Null: the usual wait, for a worker that runs the job. */
  waitFor(queue: string, id: string): EndWait | null;
}

const readKey = rule(checkPlainName);

interface Registration {
  /** Key of its configuration. `''` is the one without a key. */
  readonly config: string;
  readonly given: QueueOptions;
  readonly resolved: ResolvedQueueOptions;
  readonly limits: QueueLimits;
  /** Whether no module registers it: it was opened by its name. */
  readonly isOpened?: boolean;
}

/**
 * The queues of the application by name. A name that is registered in several modules is one queue. A registration with only a
 * name refers to the queue, whose options another module sets. Mistakes in registrations are collected for the `BootstrapError`,
 * which lists all mistakes.
 */
export class QueueRegistry {
  readonly faults: string[] = [];
  private readonly queues = new Map<string, Registration>();
  /** Queues that are registered with invalid options. They are known, so no error says that they are not registered. */
  private readonly refused = new Set<string>();

  private limits: QueueLimits | undefined;
  /** Whether options may be in use, so that those of a queue cannot change any more. */
  private isSealed = false;

  /** Settings by key of the configuration. */
  private readonly configs = new Map<string, ResolvedModuleOptions>();

  constructor(
    private readonly module: ResolvedModuleOptions,
    /** Whether there is a `forRoot` without a key. */
    private readonly hasRoot: boolean,
    private readonly substitute?: Pick<Substitute, 'namedOptions'>,
  ) {}

  /**
   * Adds a queue, or compares it with the existing one.
   *
   * @param options as passed to `registerQueue`, or returned by its factory.
   * @param root its configuration: the key, and the options of its `forRoot`; undefined if there is no such `forRoot`.
   */
  register(name: unknown, options: unknown, root: { readonly key: unknown; readonly given: unknown }): void {
    const queue = typeof name === 'string' ? name : show(name);
    const config = (root.key ?? '') as string;
    // A substitute needs no `forRoot`.
    if (root.given === undefined && !this.substitute)
      return this.refuse(name, [missingRoot(queue, root.key)]);
    if (!hasFields(options))
      return this.refuse(name, [faultOfFactory(name === undefined ? undefined : queue, options).message]);
    if (root.key !== undefined)
      this.configure(config, this.substitute ? this.substitute.namedOptions(root.given) : root.given);
    const given = copyFields(options, `registerQueue('${queue}')`, QUEUE_OPTION_NAMES);
    if (given['name'] !== undefined && given['name'] !== name)
      return this.refuse(name, [otherName(queue, given['name']).message]);
    const named = { ...given, name } as QueueOptions;
    const { value: resolved, faults } = collectFaults((report) =>
      resolveQueueOptions(named, this.settingsOf(config), report),
    );
    if (faults.length > 0) return this.refuse(name, faults);
    this.add({ config, given: named, resolved, limits: limitsOf(resolved) });
  }

  private refuse(name: unknown, faults: readonly string[]): void {
    this.faults.push(...faults);
    if (typeof name === 'string') this.refused.add(name);
  }

  private add(registration: Registration): void {
    const { config, given, resolved, limits } = registration;
    const first = this.queues.get(given.name);
    if (first === undefined) {
      this.queues.set(given.name, registration);
    } else if (refersTo(registration, first)) {
      this.queues.set(given.name, { ...first, isOpened: false });
    } else if (refersTo(first, registration) && !this.isSealed) {
      // Nest may have created the handle already, which has the objects of the first registration.
      this.queues.set(given.name, {
        ...registration,
        resolved: Object.assign(first.resolved, resolved),
        limits: Object.assign(first.limits, limits),
      });
    } else if (first.config === config && isDeepStrictEqual(first.resolved, resolved)) {
      this.queues.set(given.name, { ...first, isOpened: false });
    } else {
      this.faults.push(
        new QueueConflictError(given.name, showOptions(keyed(first)), showOptions(keyed({ config, given })))
          .message,
      );
    }
  }

  /** From now on, a registration cannot set the options of a queue that has only been named before. */
  seal(): void {
    this.isSealed = true;
  }

  /** Reads the options of `forRoot` with a key. Each of its queues passes them here. */
  private configure(key: string, given: unknown): void {
    if (this.configs.has(key)) return;
    const { value, faults } = collectFaults((report) => {
      readKey(key, 'the key of forRoot()', report);
      return resolveNamedOptions(key, given, this.module, report);
    });
    this.faults.push(...faults);
    this.configs.set(key, value);
  }

  /** Names of all registered queues, in the order of their registration. */
  names(): readonly string[] {
    return [...new Set([...this.queues.keys(), ...this.refused])];
  }

  /** Whether the queue is registered with valid options. */
  has(queue: string): boolean {
    return this.queues.has(queue);
  }

  /** Whether a module registers the queue, so that this process knows its options. */
  isRegistered(queue: string): boolean {
    return this.has(queue) && this.queues.get(queue)!.isOpened !== true;
  }

  /**
   * Key of the configuration of a queue. `''` is the one without a key, and also the answer for a queue that is not registered.
   */
  configOf(queue: string): string {
    return this.queues.get(queue)?.config ?? '';
  }

  /** The options of a configuration, with all defaults. */
  settingsOf(config: string): ResolvedModuleOptions {
    return this.configs.get(config) ?? this.module;
  }

  /** Names of the queues of a configuration that are registered with valid options. */
  queuesOf(config: string): readonly string[] {
    return [...this.queues.keys()].filter((queue) => this.configOf(queue) === config);
  }

  /**
   * The options of a queue, with all defaults.
   *
   * @throws {UnknownQueueError} when no module registers it.
   * @throws {InvalidQueueNameError} when the name is invalid.
   */
  optionsOf(queue: string): ResolvedQueueOptions {
    return this.registrationOf(queue).resolved;
  }

  /** The limits of a queue, the same object for every call. A queue that is not registered has the default limits. */
  limitsOf(queue: string): QueueLimits {
    return this.queues.get(queue)?.limits ?? this.defaultLimits;
  }

  private get defaultLimits(): QueueLimits {
    this.limits ??= limitsOf(resolveQueueOptions({ name: 'default' }, this.module));
    return this.limits;
  }

  /**
   * The options of a queue. A queue that is not registered is registered now, with the defaults of `forRoot`.
   *
   * @throws {InvalidQueueNameError}
   * @throws {InvalidOptionError} if there is no `forRoot` without a key.
   */
  open(name: string): ResolvedQueueOptions {
    const found = this.queues.get(name);
    if (found !== undefined) return found.resolved;
    checkQueueName(name);
    if (!this.hasRoot && !this.substitute) {
      const expected =
        'a registered queue, because there is no forRoot() without a key whose options it could have';
      throw new InvalidOptionError(`queue('${name}')`, expected, name);
    }
    const resolved = resolveQueueOptions({ name }, this.module);
    this.queues.set(name, {
      config: '',
      given: { name },
      resolved,
      limits: limitsOf(resolved),
      isOpened: true,
    });
    return resolved;
  }

  private registrationOf(queue: string): Registration {
    const found = this.queues.get(queue);
    if (found === undefined) throw new UnknownQueueError(checkQueueName(queue), this.names());
    return found;
  }
}

/** Whether a registration has only a name, or also the key of the other's configuration. */
function refersTo({ config, given }: Registration, other: Registration): boolean {
  const hasOptions = Object.entries(given).some(([field, value]) => field !== 'name' && value !== undefined);
  return !hasOptions && (config === '' || config === other.config);
}

/** The options of one registration on one line, without the name, which the message already has. */
function showOptions({ name: _, ...options }: QueueOptions & { readonly configKey?: string }): string {
  return inspect(options, { breakLength: Infinity, depth: 4 });
}

function keyed({ config, given }: Pick<Registration, 'config' | 'given'>) {
  return config === '' ? given : { ...given, configKey: config };
}

function faultOfFactory(queue: string | undefined, options: unknown): InvalidOptionError {
  if (queue === undefined)
    return new InvalidOptionError('registerQueue()', "an object: { name: 'email' }", options);
  const place = `the result of useFactory of registerQueueAsync('${queue}')`;
  return new InvalidOptionError(place, 'an object of options', options);
}

function otherName(queue: string, name: unknown): InvalidOptionError {
  const place = `registerQueueAsync('${queue}').useFactory`;
  const message = `${place} returns the name ${show(name)}; leave it out, because the name is outside of useFactory`;
  return new InvalidOptionError(place, 'a function that returns no name', name, message);
}

function missingRoot(queue: string, key: unknown): string {
  return key === undefined
    ? `registerQueue('${queue}') names no configKey, and there is no forRoot() without a key; name one, or add it`
    : `registerQueue('${queue}').configKey: there is no forRoot(${typeof key === 'string' ? quoted(key) : show(key)}, …); import it once, in the root module`;
}

/** Keys of all `forRoot` that have one. Nest knows all modules before it creates providers, so the list is complete. */
export function configKeys(discovery: DiscoveryService): readonly string[] {
  const keys = discovery.getProviders().map(({ token }) => keyOfNamedRoot(token));
  return [...new Set(keys.filter((key) => key !== undefined))];
}

/** The connection of `forRoot`, with its key; empty without one. */
export interface ConfigConnection {
  readonly key: string;
  readonly connection: ConnectionOption;
}

/** The connections of the configurations that need a store. */
export function connectionsInUse(discovery: DiscoveryService, registry: QueueRegistry): ConfigConnection[] {
  return configsInUse(discovery, registry).map((key) => ({
    key,
    connection: registry.settingsOf(key).connection,
  }));
}

/** Keys of the configurations that need a store: those with queues, and `''` for `forRoot()` without a key, if there is one. */
export function configsInUse(discovery: DiscoveryService, registry: QueueRegistry): readonly string[] {
  const hasRoot = discovery.getProviders().some(({ token }) => token === ROOT_OPTIONS);
  const others = configKeys(discovery).filter((key) => registry.queuesOf(key).length > 0);
  return hasRoot ? ['', ...others] : others;
}
