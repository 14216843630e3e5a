import { UnknownQueueError } from '../../errors.js';
import { show } from '../../errors/show.js';
import { isDefinition } from '../../job/define-job.js';
import { hasFields } from '../../job/fields.js';
import { checkQueueName } from '../../job/job-id.js';
import { faults } from './faults.js';

/** The queues that one pool works on. */
export interface QueueGroup {
  /** Strictly in this order, or by weights. */
  readonly order: 'strict' | 'weighted';
  readonly queues: readonly { readonly name: string; readonly weight: number }[];
}

const MAX_WEIGHT = 1000;

/** Reads the queues of `@Processor`. Undefined if they are invalid; then the mistakes are added to the faults. */
export function readGroup(
  className: string,
  given: unknown,
  known: readonly string[],
  found: string[],
): QueueGroup | undefined {
  const before = found.length;
  const place = `@Processor of ${className}`;
  const { order, queues } = entriesOf(given);
  if (queues.length === 0) found.push(faults.noQueues(className, show(given)));
  const seen = new Set<unknown>();
  for (const [name, weight] of queues) {
    checkName(name, place, known, found);
    if (seen.has(name)) found.push(faults.queueTwice(className, String(name)));
    seen.add(name);
    if (weight !== undefined && !isWeight(weight))
      found.push(faults.weight(className, String(name), show(weight)));
  }
  if (found.length > before) return undefined;
  // The weight of a single queue has no meaning.
  const weightOf = (weight: unknown) => (queues.length > 1 ? ((weight as number | undefined) ?? 1) : 1);
  return {
    order: queues.length > 1 ? order : 'strict',
    queues: queues.map(([name, weight]) => ({ name: name as string, weight: weightOf(weight) })),
  };
}

/** A text that is equal for the same queues in the same order, or with the same weights. */
export function groupKey({ order, queues }: QueueGroup): string {
  const parts = queues.map(({ name, weight }) => `${name} ${weight}`);
  return [order, ...(order === 'strict' ? parts : parts.toSorted())].join('\n');
}

/** For messages: `'critical' before 'default'`, `'critical' 6 : 'default' 3`. */
export function showGroup({ order, queues }: QueueGroup): string {
  return order === 'strict'
    ? queues.map(({ name }) => `'${name}'`).join(' before ')
    : queues.map(({ name, weight }) => `'${name}' ${weight}`).join(' : ');
}

/** Names with their weights. The weight is undefined if the order decides. */
function entriesOf(given: unknown): {
  order: QueueGroup['order'];
  queues: readonly (readonly [unknown, unknown])[];
} {
  try {
    if (Array.isArray(given)) {
      return { order: 'strict', queues: given.map((one) => [nameOf(one), undefined] as const) };
    }
    const name = nameOf(given);
    // An object with the name of a queue means one queue, as elsewhere. Weights are numbers.
    if (typeof name === 'object' && name !== null && typeof (name as { name?: unknown }).name !== 'string')
      return { order: 'weighted', queues: Object.entries(name) };
    return { order: 'strict', queues: [[name, undefined]] };
  } catch {
    // A value that throws when it is read, such as a revoked proxy, names nothing.
    return { order: 'strict', queues: [] };
  }
}

function nameOf(given: unknown): unknown {
  // Queues that are named 'queue' and 'name' may have weights too.
  return isDefinition(given) && typeof given.queue === 'string' ? given.queue : given;
}

function isWeight(weight: unknown): boolean {
  return Number.isSafeInteger(weight) && (weight as number) >= 1 && (weight as number) <= MAX_WEIGHT;
}

function checkName(name: unknown, place: string, known: readonly string[], found: string[]): void {
  try {
    const queue = checkQueueName(name);
    if (!known.includes(queue))
      found.push(faults.argument(place, new UnknownQueueError(queue, known).message));
  } catch (error) {
    // As in BullMQ: `@Processor({ name: 'audio', concurrency: 5 })`.
    const advice = hasFields(name) ? "; the name comes first: @Processor('audio', { concurrency: 5 })" : '';
    found.push(faults.argument(place, (error as Error).message + advice));
  }
}
