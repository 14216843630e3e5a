import type { JobOptions } from '#lib/options/job-options.js';
import type { Random } from '../chaos/random.js';
import { BUNDLE, GROUPS, NAMES, type QueuePlan } from './plan.js';
import type { Task, Watch } from './watch.js';

/** How a key ends that a job holds until it has ended. */
const TO_END = '-end';

export interface SoakJob {
  readonly name: string;
  readonly data: Task;
  readonly options: JobOptions;
}

/** The report of a handler that charges its job. */
export const chargeOf = ({ n }: Pick<Task, 'n'>) => 1 + (n % 5);

/** Makes random jobs. */
export class Jobs {
  private n = 0;

  constructor(
    private readonly random: Random,
    private readonly watch: Watch,
  ) {}

  task(): Task {
    const { random } = this;
    const fails = random.next() < 0.25 ? random.int(1, 3) : 0;
    const fault = random.pick(['error', 'error', 'unrecoverable', 'limited', 'snooze'] as const);
    const isDeaf = random.next() < 0.05;
    const ms = isDeaf ? random.int(30, 150) : random.int(0, 25);
    const call =
      random.next() < 0.15 ? random.pick(['progress', 'log', 'update', 'update', 'charge'] as const) : null;
    return { n: this.n++, ms, fails, fault, revision: this.watch.nextRevision(), isDeaf, call };
  }

  job(plan: QueuePlan, isBulk = false): SoakJob {
    const { random } = this;
    const isStrict = plan.order === 'strict';
    const name = !isStrict && random.next() < 0.1 ? BUNDLE : random.pick(NAMES);
    const options: JobOptions = {
      ...this.groupOf(plan),
      attempts: random.int(1, 3),
      ...(random.next() < 0.2 ? { retention: '1h' } : {}),
      ...(random.next() < 0.05 ? { timeout: 15 } : {}),
      ...(random.next() < 0.05 ? { expiresIn: random.int(20, 200) } : {}),
    };
    if (name === BUNDLE) {
      const aggregate = {
        key: random.pick(['a', 'b']),
        maxDelay: random.int(10, 60),
        maxSize: random.int(2, 5),
      };
      return { name, data: this.task(), options: { ...options, aggregate } };
    }
    if (random.next() < 0.08) {
      const idHeldBy = random.pick([[], ['completed'], ['dead', 'cancelled']] as const);
      const id = `own-${random.int(1, 6)}`;
      return { name, data: this.task(), options: { ...options, id, idHeldBy } };
    }
    if (!isStrict && random.next() < 0.06) {
      const debounce = {
        key: random.pick(['x', 'y']),
        delay: random.int(5, 40),
        ...(random.next() < 0.5 ? { maxWait: random.int(40, 120) } : {}),
      };
      return { name, data: this.task(), options: { ...options, debounce } };
    }
    const place = isStrict ? {} : this.placeOf(options.group !== undefined);
    const cost = random.next() < 0.25 ? { cost: random.int(1, 5) } : {};
    const unique = this.keyOf(isStrict, isBulk, 'delay' in place);
    const key = unique.unique?.key;
    const data = { ...this.task(), ...(key?.endsWith(TO_END) && { key }) };
    return { name, data, options: { ...options, ...cost, ...unique, ...place } };
  }

  groupOf({ order }: QueuePlan): JobOptions {
    if (order === 'none' || (order === 'fair' && this.random.next() < 0.1)) return {};
    return { group: this.random.pick(GROUPS) };
  }

  private placeOf(hasGroup: boolean): JobOptions {
    const what = this.random.next();
    if (what < 0.15) return { delay: this.random.int(1, 60) };
    if (what < 0.3) return { priority: this.random.int(1, 5) };
    return what < 0.4 && !hasGroup ? { lifo: true } : {};
  }

  private keyOf(isStrict: boolean, isBulk: boolean, isDelayed: boolean): JobOptions {
    const { random } = this;
    const what = random.next();
    const until = random.pick(['started', 'settled', 50] as const);
    const name = random.pick(['x', 'y', 'z']);
    // A key is held to the end by all jobs that have it, or by none.
    const key = until === 'settled' ? `${name}${TO_END}` : name;
    if (what < 0.03 && !isBulk) return { unique: { key, onDuplicate: 'error', until } };
    if (what < 0.06) return { unique: { key, until } };
    // In strict order a job that takes the place of another would not be where the checks expect it.
    if (what < 0.09 && !isStrict) return { unique: { key, onDuplicate: 'replace', until } };
    if (what < 0.12 && !isStrict && !isDelayed)
      return { unique: { key: `${name}${TO_END}`, onDuplicate: 'keepLast' } };
    return what < 0.17 ? { throttle: { key, ttl: random.int(5, 50) } } : {};
  }
}
