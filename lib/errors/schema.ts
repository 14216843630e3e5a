import { GodwitError } from './base.js';
import { oneLine } from './show.js';

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

/** In the message; `issues` has all of them. */
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
    what: 'matches its schema as it was given, but not as JSON gives it to the handler',
    advice: 'describe what JSON holds, such as the text of a date, and let the schema make the rest of it',
  },
  handler: {
    what: 'does not match the schema of its handler',
    advice:
      'it was added by its name alone, or with another version of the schema; correct the schema, then retry the dead job',
  },
};

function list(issues: readonly PayloadIssue[]): string {
  const words = issues
    .slice(0, MOST_ISSUES)
    .map(({ path, message }) => (path ? `${oneLine(path)}: ${oneLine(message)}` : oneLine(message)));
  if (issues.length > MOST_ISSUES) words.push(`and ${issues.length - MOST_ISSUES} more`);
  return words.join('; ');
}
