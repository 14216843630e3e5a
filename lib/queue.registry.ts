import { isDeepStrictEqual, inspect } from 'node:util';
import { QueueConflictError, UnknownQueueError } from './errors.js';
import { checkQueueName } from './job/job-id.js';
import { collectFaults } from './options/check.js';
import {
  resolveQueueOptions,
  type QueueOptions,
  type ResolvedModuleOptions,
  type ResolvedQueueOptions,
} from './options/module-options.js';

interface Registration {
  readonly given: QueueOptions;
  readonly resolved: ResolvedQueueOptions;
}

/**
 * The queues of the application by name. A queue registered in several modules is one queue; what is wrong with a
 * registration is kept for the `BootstrapError`, so that it is said together with everything else.
 */
export class QueueRegistry {
  readonly faults: string[] = [];
  private readonly queues = new Map<string, Registration>();
  /** Registered with options that were refused: not unknown, so nobody need be told that they are missing. */
  private readonly refused = new Set<string>();

  constructor(private readonly module: ResolvedModuleOptions) {}

  /** Adds a queue, or meets it again. */
  register(given: QueueOptions): void {
    const { value: resolved, faults } = collectFaults((report) =>
      resolveQueueOptions(given, this.module, report),
    );
    if (faults.length > 0) {
      this.faults.push(...faults);
      this.refused.add(given.name);
      return;
    }
    const first = this.queues.get(given.name);
    if (first === undefined) {
      this.queues.set(given.name, { given, resolved });
    } else if (!isDeepStrictEqual(first.resolved, resolved)) {
      this.faults.push(
        new QueueConflictError(given.name, showOptions(first.given), showOptions(given)).message,
      );
    }
  }

  /** Names of all registered queues, in the order of their registration. */
  names(): readonly string[] {
    return [...new Set([...this.queues.keys(), ...this.refused])];
  }

  /** Whether it is registered with options that hold. */
  has(queue: string): boolean {
    return this.queues.has(queue);
  }

  /**
   * The options of a queue, with all defaults.
   *
   * @throws {UnknownQueueError} when no module registers it.
   * @throws {InvalidQueueNameError} when none could.
   */
  optionsOf(queue: string): ResolvedQueueOptions {
    const found = this.queues.get(queue);
    if (found === undefined) throw new UnknownQueueError(checkQueueName(queue), this.names());
    return found.resolved;
  }
}

/** The options of one registration on one line, without the name, which the sentence has already. */
function showOptions({ name: _, ...options }: QueueOptions): string {
  return inspect(options, { breakLength: Infinity, depth: 4 });
}
