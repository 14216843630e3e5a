import { GodwitError } from './base.js';
import { callOf, isRead } from './verbs.js';

/**
 * Whether a failed call has changed data in Redis. With `no` it certainly has not. With `partly` it has changed some jobs: a call for many
 * jobs works in steps.
 */
export type Applied = 'no' | 'partly' | 'unknown';

const EFFECTS = {
  no: 'nothing was changed',
  partly: 'a part of it took effect',
  unknown: 'whether it took effect is unknown',
} as const;

/**
 * Redis did not reply in time, or the connection broke. `applied` says whether the call has taken effect: `no`, `partly` or `unknown`.
 *
 * @example
 * if (error instanceof RedisUnavailableError) await queue.add('welcome', data, { id }); // with the same id there is only one job
 */
export class RedisUnavailableError extends GodwitError {
  readonly code = 'GODWIT_REDIS_UNAVAILABLE';

  /** The call: `add`, `counts`. */
  readonly verb: string;

  constructor(
    verb: string,
    /** Whether the call has had its effect. */
    readonly applied: Applied,
    why: string,
    options?: { cause?: unknown },
  ) {
    const call = callOf(verb);
    const effect = applied === 'unknown' && isRead(verb) ? '' : `; ${EFFECTS[applied]}`;
    const again = applied === 'no' ? ', the call can be made again' : '';
    const advice = applied === 'unknown' && call === 'add' ? ', make it again with the same job id' : again;
    super(`${call}: ${why}${effect}${advice}`, options);
    this.verb = call;
  }
}

/**
 * Redis replied with an error: out of memory, wrong type, no permission. In most cases nothing was written; see `applied`.
 *
 * @example
 * if (error instanceof RedisRefusedError && error.reply === 'OOM') throw new ServiceUnavailableException();
 */
export class RedisRefusedError extends GodwitError {
  readonly code = 'GODWIT_REDIS_REFUSED';

  /** The call: `add`, `counts`. */
  readonly verb: string;

  constructor(
    verb: string,
    /** First word of the reply: `OOM`, `WRONGTYPE`, `NOPERM`, `MISCONF`, `READONLY`. */
    readonly reply: string,
    message: string,
    options?: { cause?: unknown },
    /** Whether the call has had its effect. */
    readonly applied: Applied = 'no',
    advice = adviceFor(reply),
  ) {
    const effect = EFFECTS[applied === 'unknown' && isRead(verb) ? 'no' : applied];
    super(`${callOf(verb)}: Redis refused, ${effect}: ${message}${advice}`, options);
    this.verb = callOf(verb);
  }
}

/**
 * The job is stored, but fewer replicas than its `durability` requires confirmed it in time. It will run, unless the primary is
 * lost before a replica has it.
 *
 * @example
 * if (error instanceof NotReplicatedError) console.warn(`${error.answered} of ${error.asked} replicas have it`);
 */
export class NotReplicatedError extends GodwitError {
  readonly code = 'GODWIT_NOT_REPLICATED';
  /** Whether the job survives the loss of the primary. */
  readonly applied: Applied = 'unknown';

  constructor(
    /** Name of the queue. */
    readonly queue: string,
    /** How many replicas had to confirm. */
    readonly asked: number,
    /** How many confirmed, at the last attempt. */
    readonly answered: number,
    /** How long all attempts waited, in ms. */
    readonly waitedMs: number,
  ) {
    super(
      `add to queue '${queue}': stored, but ${answered} of ${asked} replicas confirmed it within ${waitedMs} ms; ` +
        'whether it survives the loss of the primary is unknown, make it again with the same job id',
    );
  }
}

/**
 * A newer version of Godwit has written the queue in a format that this one does not know. The process writes nothing to it.
 *
 * @example
 * if (error instanceof QueueFormatError) console.error(`queue ${error.queue} has format ${error.found}`);
 */
export class QueueFormatError extends GodwitError {
  readonly code = 'GODWIT_QUEUE_FORMAT';

  constructor(
    /** Name of the queue. */
    readonly queue: string,
    /** The number of its format. */
    readonly found: number,
    /** The number of the newest format that this version knows. */
    readonly known: number,
  ) {
    super(
      `queue '${queue}' has format ${found}, written by a newer version of godwit; this version knows formats up to ${known}: ` +
        'upgrade this process',
    );
  }
}

/**
 * Too many adds of one queue already wait for Redis in this process (`enqueueBuffer`). Await adds before you make more.
 *
 * @example
 * if (error instanceof EnqueueBufferFullError) throw new ServiceUnavailableException();
 */
export class EnqueueBufferFullError extends GodwitError {
  readonly code = 'GODWIT_ENQUEUE_BUFFER_FULL';
  /** Nothing was changed. */
  readonly applied: Applied = 'no';

  constructor(
    /** Name of the queue. */
    readonly queue: string,
    /** How many adds may wait. */
    readonly limit: number,
  ) {
    super(
      `add to queue '${queue}': ${limit} adds already wait for Redis in this process; nothing was changed, ` +
        'await adds before you make more, or raise enqueueBuffer',
    );
  }
}

/**
 * The queue is full: with this call, more jobs would wait than its option `maxWaiting` allows. Nothing was added.
 *
 * @example
 * if (error instanceof QueueFullError) throw new ServiceUnavailableException(`${error.waiting} jobs wait already`);
 */
export class QueueFullError extends GodwitError {
  readonly code = 'GODWIT_QUEUE_FULL';
  /** Nothing was changed. */
  readonly applied: Applied = 'no';

  constructor(
    /** Name of the queue. */
    readonly queue: string,
    /** How many of its jobs wait. */
    readonly waiting: number,
    /** How many may. */
    readonly limit: number,
    adds = 1,
  ) {
    const waits = waiting === 1 ? '1 job waits' : `${waiting} jobs wait`;
    super(
      `add to queue '${queue}': ${waits}${adds > 1 ? ` and this call adds ${adds}` : ''}, and at most ${limit} may wait; ` +
        `nothing was changed, ${howToFit(adds, limit)} or raise maxWaiting.limit`,
    );
  }
}

/**
 * The group is full: with this call, more of its jobs would wait than `groups.maxSize` allows. Nothing was added.
 *
 * @example
 * if (error instanceof GroupFullError) throw new ServiceUnavailableException(`too much at once: ${error.group}`);
 */
export class GroupFullError extends GodwitError {
  readonly code = 'GODWIT_GROUP_FULL';
  /** Nothing was changed. */
  readonly applied: Applied = 'no';

  constructor(
    /** Name of the queue. */
    readonly queue: string,
    /** Name of the group. */
    readonly group: string,
    /** How many of its jobs wait. */
    readonly waiting: number,
    /** How many may. */
    readonly limit: number,
    adds = 1,
  ) {
    const waits = waiting === 1 ? '1 waiting job' : `${waiting} waiting jobs`;
    super(
      `add to queue '${queue}': group ${JSON.stringify(group)} has ${waits} and may have ${limit}${adds > 1 ? `, and this call adds ${adds}` : ''}; ` +
        `nothing was changed, ${howToFit(adds, limit)} or raise groups.maxSize`,
    );
  }
}

/** A call that adds more jobs than may wait never fits. */
function howToFit(adds: number, limit: number): string {
  return adds > limit ? 'add fewer jobs at once' : 'add later';
}

/**
 * The server is not Redis 7.0+ or Valkey 7.2+.
 *
 * @example
 * if (error instanceof UnsupportedRedisError) console.error(`${error.server} ${error.version} is too old`);
 */
export class UnsupportedRedisError extends GodwitError {
  readonly code = 'GODWIT_UNSUPPORTED_REDIS';

  constructor(
    /** `Redis` or `Valkey`. */
    readonly server: string,
    /** Version as the server reports it. */
    readonly version: string,
  ) {
    super(
      `${server} ${version} is too old: Redis 7.0 or Valkey 7.2 is needed, for scripts that run at maxmemory`,
    );
  }
}

/**
 * The application has stopped, or was never started.
 *
 * @example
 * if (error instanceof NotRunningError) throw new ServiceUnavailableException();
 */
export class NotRunningError extends GodwitError {
  readonly code = 'GODWIT_NOT_RUNNING';
  /** Nothing was changed. */
  readonly applied: Applied = 'no';
  /** The call: `add`, `counts`. */
  readonly verb: string;

  constructor(verb: string) {
    super(`${callOf(verb)}: the queues are stopped; nothing was changed`);
    this.verb = callOf(verb);
  }
}

function adviceFor(reply: string): string {
  switch (reply) {
    case 'OOM':
      return ' (raise maxmemory or let the workers drain the backlog, which they can at maxmemory)';
    case 'WRONGTYPE':
      return ' (another program uses one of our keys; choose another prefix)';
    case 'NOPERM':
    case 'NOAUTH':
    case 'WRONGPASS':
      return ' (check the user, password and ACL of the connection)';
    case 'MOVED':
    case 'CROSSSLOT':
      return ' (this Redis is a node of a cluster: set the connection to { cluster: [...] })';
    case 'READONLY':
      return ' (the connection leads to a replica: connect to its primary, or name the sentinels in the connection)';
    case 'NOREPLICAS':
      return ' (fewer replicas are connected than min-replicas-to-write of the server)';
    case 'CLUSTERDOWN':
      return ' (a part of the cluster has no master: see CLUSTER INFO)';
    case 'LOADING':
      return ' (Redis reads its data after a start: call again later)';
    case 'BUSY':
      return ' (a script of another program holds up Redis: see SLOWLOG, or end it with SCRIPT KILL)';
    case 'MISCONF':
      return ' (Redis cannot write to its disk)';
    default:
      return '';
  }
}
