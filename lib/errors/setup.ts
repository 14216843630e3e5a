import { GodwitError } from './base.js';
import { escaped } from './show.js';

/**
 * The queue is not registered.
 *
 * @example
 * if (error instanceof UnknownQueueError) console.error(`${error.queue} must be one of ${error.known.join(', ')}`);
 */
export class UnknownQueueError extends GodwitError {
  readonly code = 'GODWIT_UNKNOWN_QUEUE';

  constructor(
    /** Name of the queue. */
    readonly queue: string,
    /** Names of the queues that are registered. */
    readonly known: readonly string[],
  ) {
    super(
      `queue '${queue}' is not registered; add QueueModule.registerQueue({ name: '${queue}' }) to a module` +
        (known.length ? ` (registered: ${known.join(', ')})` : ' (no queue is registered)'),
    );
  }
}

/**
 * One queue name is registered twice with different options.
 *
 * @example
 * if (error instanceof QueueConflictError) console.error(error.first, error.second);
 */
export class QueueConflictError extends GodwitError {
  readonly code = 'GODWIT_QUEUE_CONFLICT';

  constructor(
    /** Name of the queue. */
    readonly queue: string,
    /** Its options at the first registration, on one line. */
    readonly first: string,
    /** Its options at the other registration. */
    readonly second: string,
  ) {
    super(
      `queue '${queue}' is registered twice with different options: ${first} and ${second}; ` +
        `keep one, and leave only { name: '${queue}' } in the other`,
    );
  }
}

/**
 * `registerQueue` or a processor is used, but `QueueModule.forRoot` is not imported anywhere.
 *
 * @example
 * if (error instanceof MissingRootError) console.error('import QueueModule.forRoot() in the root module');
 */
export class MissingRootError extends GodwitError {
  readonly code = 'GODWIT_MISSING_ROOT';

  constructor() {
    super('QueueModule.forRoot() or forRootAsync() is missing; import one of them once, in the root module');
  }
}

/**
 * Mistakes in the configuration, found at startup and reported together.
 *
 * @example
 * if (error instanceof BootstrapError) for (const fault of error.faults) console.error(fault);
 */
export class BootstrapError extends GodwitError {
  readonly code = 'GODWIT_BOOTSTRAP';
  protected static override readonly keepsText = true;
  /** One sentence for each mistake. */
  readonly faults: readonly string[];

  constructor(given: readonly string[]) {
    const faults = given.map(escaped);
    const number = faults.length === 1 ? '1 fault' : `${faults.length} faults`;
    super(`the queues cannot start, ${number}:\n${faults.map((fault) => ` - ${fault}`).join('\n')}`);
    this.faults = faults;
  }
}

/** One installed copy of `@nestjs/core`. */
export interface NestCopy {
  /** Version of the package. */
  readonly version: string;
  /** Folder of the package. */
  readonly path: string;
}

/**
 * The application uses another copy of `@nestjs/core` than this package: two major versions of Nest in one `node_modules`, or the
 * same version installed twice.
 *
 * @example
 * if (error instanceof NestConflictError) console.error(error.application?.path, error.found.path);
 */
export class NestConflictError extends GodwitError {
  readonly code = 'GODWIT_NEST_CONFLICT';

  constructor(
    /** The copy that the application uses; undefined if it is unknown, as in a bundle. */
    readonly application: NestCopy | undefined,
    /** The copy that this library imports. */
    readonly found: NestCopy,
  ) {
    super(
      `the application runs on ${application ? show(application) : 'another copy of @nestjs/core'}, but godwit finds ${show(found)}; ` +
        'there must be only one copy, because each knows only its own classes: npm ls @nestjs/core shows which package uses which; ' +
        'give all of them the same version, and run npm dedupe',
    );
  }
}

function show({ version, path }: NestCopy): string {
  return `@nestjs/core ${version} (${path})`;
}
