import { GodwitError } from './base.js';
import { EVENT_PAYLOAD, show, oneLine } from './show.js';

/**
 * Invalid value for an option, or unknown option. Nothing was changed.
 *
 * @example
 * if (error instanceof InvalidOptionError) console.error(`${error.path} must be ${error.rule}`);
 */
export class InvalidOptionError extends GodwitError {
  readonly code = 'GODWIT_INVALID_OPTION';

  constructor(
    /** Where: `forRoot().shutdown.timeout`, `add().delay`. */
    readonly path: string,
    /** The expected value, as a phrase that follows "must be". */
    readonly rule: string,
    /** The value that was passed. */
    readonly received: unknown,
    /** Another message, if `rule` does not fit after "must be". */
    message = `${path} must be ${rule}, got ${show(received)}`,
  ) {
    super(message);
  }
}

/**
 * A queue name outside `[A-Za-z0-9._-]{1,128}`.
 *
 * @example
 * if (error instanceof InvalidQueueNameError) console.error('no queue can be called', error.received);
 */
export class InvalidQueueNameError extends GodwitError {
  readonly code = 'GODWIT_INVALID_QUEUE_NAME';

  constructor(
    /** The value that was passed. */
    readonly received: unknown,
    place?: string,
  ) {
    super(
      (place === undefined ? '' : `${place}: `) +
        `a queue name is 1 to 128 characters out of A-Z a-z 0-9 . _ -, got ${show(received)}` +
        (typeof received === 'string' && /[{}]/.test(received)
          ? '; leave out the braces: all keys of a queue have one hash tag without them'
          : ''),
    );
  }
}

/**
 * A job name that is empty, over 255 bytes, or contains control characters or lone surrogates.
 *
 * @example
 * if (error instanceof InvalidJobNameError) console.error('no job can be called', error.received, error.why);
 */
export class InvalidJobNameError extends GodwitError {
  readonly code = 'GODWIT_INVALID_JOB_NAME';

  constructor(
    /** The value that was passed. */
    readonly received: unknown,
    /** The fault of the value, as a phrase that follows the value. */
    readonly why: string,
  ) {
    const advice = typeof received === 'object' && received !== null;
    super(
      badText('a job name', received, why) +
        (advice ? '; the name comes first, then the data or the options' : ''),
    );
  }
}

/**
 * A job id that is empty, over 255 bytes, or contains control characters or lone surrogates.
 *
 * @example
 * if (error instanceof InvalidJobIdError) throw new BadRequestException(error.message);
 */
export class InvalidJobIdError extends GodwitError {
  readonly code = 'GODWIT_INVALID_JOB_ID';

  constructor(
    /** The value that was passed. */
    readonly received: unknown,
    /** The fault of the value, as a phrase that follows the value. */
    readonly why: string,
  ) {
    const advice = typeof received === 'number' || typeof received === 'bigint';
    super(badText('a job id', received, why) + (advice ? `; pass String(${received})` : ''));
  }
}

function badText(what: string, received: unknown, why: string): string {
  return `${what} is 1 to 255 bytes of well-formed text without control characters: ${show(received)} ${why}`;
}

/**
 * The data of a job, or a result, that JSON cannot represent.
 *
 * @example
 * if (error instanceof InvalidPayloadError) console.error(`${error.path} is ${error.found}`);
 */
export class InvalidPayloadError extends GodwitError {
  readonly code = 'GODWIT_INVALID_PAYLOAD';

  constructor(
    /** Where inside the data: `data.items[3].at`. */
    readonly path: string,
    /** Kind of the invalid value: `a function`, `a BigInt`, `a circular reference`. */
    readonly found: string,
  ) {
    const advice =
      found === 'undefined'
        ? 'pass null if there is no value'
        : 'turn it into a string, a number or plain data first';
    super(`${path} is ${found}, which JSON cannot hold; ${advice}`);
  }
}

/**
 * The encoded data is larger than `maxPayloadBytes`, or the payload of `publish()` is larger than 1,000 bytes.
 *
 * @example
 * if (error instanceof PayloadTooLargeError) throw new PayloadTooLargeException(`${error.bytes} bytes`);
 */
export class PayloadTooLargeError extends GodwitError {
  readonly code = 'GODWIT_PAYLOAD_TOO_LARGE';

  constructor(
    /** Size of the JSON text in bytes, or a lower bound of it. */
    readonly bytes: number,
    /** The limit in bytes. */
    readonly maxPayloadBytes: number,
    what = 'the data of the job',
    /** Counting stopped early: `bytes` is a lower bound. */
    atLeast = false,
  ) {
    const limit =
      what === EVENT_PAYLOAD
        ? `more than ${maxPayloadBytes}; store it elsewhere and put its address into the event`
        : `more than maxPayloadBytes (${maxPayloadBytes}); store it elsewhere and put its address into the job, or raise maxPayloadBytes`;
    super(`${what} takes ${atLeast ? 'at least ' : ''}${bytes} bytes, ${limit}`);
  }
}

/** One issue that a schema reported. */
export interface PayloadIssue {
  /** The message of the schema. */
  readonly message: string;
  /** Dotted path inside the data, empty for the data itself. */
  readonly path: string;
}

/**
 * Which data did not match: as it was passed to `add`, the same after a JSON round trip (a `Date` is a string then), or before its
 * handler ran.
 */
export type SchemaSide = 'add' | 'json' | 'handler';

/** How many issues the message shows; `issues` has all. */
const MOST_ISSUES = 10;

/**
 * The data does not match the schema of `defineJob`. If `add` throws it, nothing was added. Before a handler, the job is dead at once
 * with reason `unrecoverable`.
 *
 * @example
 * if (error instanceof SchemaViolationError) throw new BadRequestException(error.issues);
 */
export class SchemaViolationError extends GodwitError {
  readonly code = 'GODWIT_SCHEMA_VIOLATION';

  constructor(
    /** Name of the queue. */
    readonly queue: string,
    /** Name of the job. */
    readonly jobName: string,
    /** Every issue that the schema reported. */
    readonly issues: readonly PayloadIssue[],
    /** Which data did not match. */
    readonly side: SchemaSide = 'add',
  ) {
    const { what, advice } = WORDS[side];
    super(`the data of job '${oneLine(jobName)}' in queue '${queue}' ${what}: ${list(issues)}; ${advice}`);
  }
}

const WORDS: Readonly<Record<SchemaSide, { readonly what: string; readonly advice: string }>> = {
  add: { what: 'does not match its schema', advice: 'correct the data, or the schema' },
  json: {
    what: 'matches its schema, but not after the JSON round trip that it makes on its way to the handler',
    advice:
      'let the schema accept the JSON form, such as the text of a date, and convert it (z.coerce.date())',
  },
  handler: {
    what: 'does not match the schema of its handler',
    advice:
      'the job was added by name, or with another version of the schema; correct the schema, then retry the dead job',
  },
};

function list(issues: readonly PayloadIssue[]): string {
  const words = issues
    .slice(0, MOST_ISSUES)
    .map(({ path, message }) => (path ? `${oneLine(path)}: ${oneLine(message)}` : oneLine(message)));
  if (issues.length > MOST_ISSUES) words.push(`and ${issues.length - MOST_ISSUES} more`);
  return words.join('; ');
}
