import { worksOn, type ProcessOrder, type ProcessVerbs } from '../contract/process-verbs.js';
import { InvalidOptionError, ProcessNotFoundError } from '../errors.js';
import { checkQueueName, generateId } from '../job/job-id.js';
import { field, refuse, rule, selecting, shape } from '../options/check.js';

/**
 * Which processes get an order, and for which of their queues. At least one of `process`, `host` and `queue` is required. If one of them
 * is `undefined`, the call is refused.
 */
export interface ProcessOrderOptions {
  /** Id of the process, or `host:pid`. @default all */
  readonly process?: string;
  /** Name of the machine. @default all */
  readonly host?: string;
  /** Only for this queue, in all chosen processes that work on it. @default all queues of the processes */
  readonly queue?: string;
  /** Name of the person or program that gives the order, for the log of the process. @default the `actor` of `createInspector`, or none */
  readonly by?: string;
}

/** A process that was given an order. */
export interface OrderedProcess {
  /** Id of the process. */
  readonly id: string;
  /** Name of the machine. */
  readonly host: string;
  /** Process id. */
  readonly pid: number;
}

const line = rule((value: unknown, path: string) => {
  if (typeof value === 'string' && value !== '' && value.length <= 256) return value;
  throw new InvalidOptionError(path, 'a string of 1 to 256 characters', value);
});
const CHOICE = {
  process: field('process', line),
  host: field('host', line),
  queue: field(
    'queue',
    rule((name: unknown) => checkQueueName(name)),
  ),
} as const;
const readOptions = shape({
  ...selecting(CHOICE, 'to mean all'),
  by: field('by', line),
});

/**
 * Gives orders to worker processes. A process obeys when it next renews its entry: within half the lease of `forRoot`, 4 s by
 * default. `workers()` shows that it has obeyed. An order ends with the process: a restarted process works again.
 *
 * @example
 * for (const { host, pid } of await inspector.processes.quiet({ host: 'worker-2' })) console.log(host, pid);
 */
export class ProcessOrders {
  /** @internal */
  constructor(
    private readonly processes: Pick<ProcessVerbs, 'list' | 'order'>,
    private readonly actor = '',
  ) {}

  /**
   * The processes claim no more jobs until `resume`. Running jobs continue, and jobs that have not started are given back. Returns
   * the processes that were given the order.
   *
   * @throws {InvalidOptionError | InvalidQueueNameError}
   * @throws {ProcessNotFoundError} if no living process fits, or it runs a version that takes no orders.
   * @throws {RedisUnavailableError}
   * @example
   * await inspector.processes.pause({ process: 'worker-2:41', queue: 'media', by: 'ada' });
   */
  pause(options: ProcessOrderOptions): Promise<OrderedProcess[]> {
    return this.give('pause', options);
  }

  /**
   * Ends a pause of the processes, by an order or by `QueueRuntime.pause`. Queues that are quiet stay so.
   *
   * @throws {InvalidOptionError | InvalidQueueNameError}
   * @throws {ProcessNotFoundError} if no living process fits, or it runs a version that takes no orders.
   * @throws {RedisUnavailableError}
   * @example
   * await inspector.processes.resume({ process: 'worker-2:41' });
   */
  resume(options: ProcessOrderOptions): Promise<OrderedProcess[]> {
    return this.give('resume', options);
  }

  /**
   * The processes claim no more jobs until they end, as with `QueueRuntime.quiet`.
   *
   * @throws {InvalidOptionError | InvalidQueueNameError}
   * @throws {ProcessNotFoundError} if no living process fits, or it runs a version that takes no orders.
   * @throws {RedisUnavailableError}
   * @example
   * await inspector.processes.quiet({ host: 'worker-2' });
   */
  quiet(options: ProcessOrderOptions): Promise<OrderedProcess[]> {
    return this.give('quiet', options);
  }

  private async give(kind: ProcessOrder['kind'], given: ProcessOrderOptions): Promise<OrderedProcess[]> {
    const place = `processes.${kind}()`;
    const { process, host, queue, by = this.actor } = readOptions(given, place, refuse) ?? {};
    if (process === undefined && host === undefined && queue === undefined)
      throw new InvalidOptionError(place, 'an object with process, host or queue', given);
    const { records } = await this.processes.list();
    // An order for a queue that the process does not work on changes nothing.
    const found = records.filter(
      (one) =>
        (process === undefined || one.id === process || `${one.host}:${one.pid}` === process) &&
        (host === undefined || one.host === host) &&
        (queue === undefined || worksOn(one, queue)),
    );
    const order = { id: generateId(Date.now()), kind, queue: queue ?? null, by };
    const able = found.filter(({ obeyed }) => obeyed !== null);
    const accepted = await Promise.all(able.map(({ id }) => this.processes.order(id, order)));
    const ordered = able.filter((_, at) => accepted[at]);
    if (ordered.length === 0)
      throw new ProcessNotFoundError({ process, host, queue }, found.length > able.length);
    return ordered.map(({ id, host: at, pid }) => ({ id, host: at, pid }));
  }
}
