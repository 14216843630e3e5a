import { InvalidOptionError } from '../errors.js';
import { fieldsOf, hasFields } from '../job/fields.js';
import { readable, type Report } from './check.js';
import {
  resolveModuleOptions,
  type QueueModuleOptions,
  type ResolvedModuleOptions,
} from './module-options.js';

/**
 * `QueueModule.forRoot(key, options)`: connection, prefix and defaults of the queues of this configuration. Options of the process
 * belong in `forRoot()` without a key.
 */
export type NamedModuleOptions = Pick<
  QueueModuleOptions,
  | 'connection'
  | 'prefix'
  | 'defaults'
  | 'maxPayloadBytes'
  | 'events'
  | 'dead'
  | 'completed'
  | 'durability'
  | 'unknownJob'
  | 'unknownJobTimeout'
>;

/** A record, so that the compiler says which option is new here. */
const OF_PROCESS: Readonly<Record<Exclude<keyof QueueModuleOptions, keyof NamedModuleOptions>, true>> = {
  role: true,
  autoStart: true,
  enqueueTimeout: true,
  enqueueBuffer: true,
  lease: true,
  shutdown: true,
  upkeep: true,
  schedules: true,
  enhancers: true,
  wrap: true,
};

/**
 * @param main The options of `forRoot()` without a key, for what holds for the process.
 * @throws {InvalidOptionError} at the first fault, unless `report` collects.
 */
export function resolveNamedOptions(
  key: string,
  given: unknown,
  main: ResolvedModuleOptions,
  report: Report,
): ResolvedModuleOptions {
  const path = `forRoot('${key}')`;
  const own = resolveModuleOptions(given as QueueModuleOptions, report, path);
  if (hasFields(given)) {
    for (const [name, value] of readable(given, path, () => fieldsOf(given, Object.keys(OF_PROCESS)))) {
      if (Object.hasOwn(OF_PROCESS, name)) report(misplaced(`${path}.${name}`, value));
    }
  }
  const { connection, prefix, defaults, maxPayloadBytes, events, dead, completed, durability } = own;
  return { ...main, connection, prefix, defaults, maxPayloadBytes, events, dead, completed, durability };
}

function misplaced(path: string, value: unknown): InvalidOptionError {
  return new InvalidOptionError(
    path,
    'left out, as it holds for the whole process: say it in forRoot() without a key',
    value,
  );
}
