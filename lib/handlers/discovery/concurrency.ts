import { messageOf } from '../../errors/thrown.js';
import { collectFaults } from '../../options/check.js';
import {
  checkProcessorOptions,
  DEFAULT_CONCURRENCY,
  readConcurrency,
  type InjectedToken,
  type ProcessorOptions,
} from '../../options/worker-options.js';
import { faults } from './faults.js';
import type { FoundProcessor } from './processor.explorer.js';

/** The concurrency from the registration of a queue. Undefined if it sets none. */
type ConcurrencyOfQueue = (queue: string) => number | undefined;

/** The concurrency of the pool of these queues. Processors and registrations that set one must agree. */
export async function concurrencyOf(
  queues: readonly string[],
  processors: readonly FoundProcessor[],
  ofQueue: ConcurrencyOfQueue,
  found: string[],
): Promise<number> {
  const asked: { place: string; concurrency: number }[] = [];
  for (const processor of processors) {
    const { className, mark } = processor;
    const path = `@Processor('${queues.join("', '")}') of ${className}`;
    const checked = collectFaults((report) => checkProcessorOptions(mark.options, path, report));
    found.push(...checked.faults);
    if (checked.faults.length > 0 || mark.options.concurrency === undefined) continue;
    const concurrency = await valueOf(processor, checked.value, path, found);
    if (concurrency !== undefined) asked.push({ place: className, concurrency });
  }
  for (const queue of queues) {
    const concurrency = ofQueue(queue);
    if (concurrency !== undefined) asked.push({ place: `registerQueue('${queue}').worker`, concurrency });
  }
  if (new Set(asked.map((one) => one.concurrency)).size > 1)
    found.push(faults.concurrencyConflict(queues, asked));
  return asked[0]?.concurrency ?? DEFAULT_CONCURRENCY;
}

async function valueOf(
  processor: FoundProcessor,
  { concurrency, inject = [] }: Pick<ProcessorOptions, 'concurrency' | 'inject'>,
  path: string,
  found: string[],
): Promise<number | undefined> {
  if (typeof concurrency !== 'function') return concurrency;
  let value: unknown;
  try {
    value = await concurrency(...inject.map((token) => injected(processor, token)));
  } catch (error) {
    found.push(faults.argument(`${path}.concurrency()`, messageOf(error)));
    return undefined;
  }
  const checked = collectFaults((report) =>
    readConcurrency(value, `the result of ${path}.concurrency()`, report),
  );
  found.push(...checked.faults);
  return checked.value;
}

type Host = NonNullable<FoundProcessor['wrapper']['host']>;

/** The provider that the module of the processor would inject for this token. */
function injected({ wrapper }: FoundProcessor, given: InjectedToken): unknown {
  const { token, optional } =
    typeof given === 'object' && given !== null ? given : { token: given, optional: false };
  const host = wrapper.host;
  const found = host && (host.providers.get(token) ?? exported(host, token, new Set([host])));
  if (found) return found.instance;
  if (optional) return undefined;
  const name = typeof token === 'function' ? token.name : String(token);
  throw new Error(
    `${name} cannot be injected; provide it in the module of the processor, or import a module that exports it`,
  );
}

/** Finds a provider as Nest does: in the imports (including global modules), and in the modules that these re-export. */
function exported(
  host: Host,
  token: string | symbol | Function,
  seen: Set<Host>,
  isNested = false,
): FoundProcessor['wrapper'] | undefined {
  for (const one of host.imports) {
    if (seen.has(one) || (isNested && !host.exports.has(one.metatype))) continue;
    seen.add(one);
    const own = one.exports.has(token) ? one.providers.get(token) : undefined;
    const found = own ?? exported(one, token, seen, true);
    if (found) return found;
  }
  return undefined;
}
