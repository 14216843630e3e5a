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
  | 'backoffs'
  | 'lease'
  | 'shutdown'
  | 'logs'
  | 'maxPayloadBytes'
  | 'payloads'
  | 'events'
  | 'dead'
  | 'progress'
  | 'completed'
  | 'durability'
  | 'unknownJob'
  | 'unknownJobTimeout'
  | 'limits'
>;

/** A record of all options, so that the compiler reports a new option that is missing here. */
const OF_PROCESS: Readonly<Record<Exclude<keyof QueueModuleOptions, keyof NamedModuleOptions>, true>> = {
  role: true,
  autoStart: true,
  log: true,
  enqueueTimeout: true,
  enqueueBuffer: true,
  upkeep: true,
  history: true,
  schedules: true,
  enhancers: true,
  wrap: true,
  headers: true,
  telemetry: true,
};

/**
 * @param main The options of `forRoot()` without a key, which apply to the whole process.
 * @throws {InvalidOptionError} at the first fault, unless `report` collects.
 */
export function resolveNamedOptions(
  key: string,
  given: unknown,
  main: ResolvedModuleOptions,
  report: Report,
): ResolvedModuleOptions {
  const path = `forRoot('${key}')`;
  const own = resolveModuleOptions(given as QueueModuleOptions, report, path, main);
  if (hasFields(given)) {
    for (const [name, value] of readable(given, path, () => fieldsOf(given, Object.keys(OF_PROCESS)))) {
      if (Object.hasOwn(OF_PROCESS, name)) report(misplaced(`${path}.${name}`, value));
    }
  }
  const { connection, prefix, defaults, maxPayloadBytes, payloads, events, dead, completed, durability } =
    own;
  const { progress, unknownJob, unknownJobTimeoutMs, lease, shutdown, logs } = own;
  const ofQueues = {
    defaults,
    backoffs: own.backoffs,
    maxPayloadBytes,
    payloads,
    events,
    progress,
    dead,
    completed,
    durability,
    unknownJob,
    unknownJobTimeoutMs,
    limits: own.limits,
    lease,
    shutdown,
    logs,
  };
  return { ...main, connection, prefix, ...ofQueues };
}

function misplaced(path: string, value: unknown): InvalidOptionError {
  return new InvalidOptionError(
    path,
    'left out, because it applies to the whole process: set it in forRoot() without a key',
    value,
  );
}
