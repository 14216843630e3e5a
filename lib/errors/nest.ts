import { GodwitError } from './base.js';

/** One installed copy of `@nestjs/core`. */
export interface NestCopy {
  /** Of the package. */
  readonly version: string;
  /** Folder of the package. */
  readonly path: string;
}

/**
 * The application runs on one copy of `@nestjs/core`, and this library finds another: its classes are not those that the
 * application provides. Two majors of Nest in one `node_modules`, or the same version installed twice.
 *
 * @example
 * if (error instanceof NestConflictError) console.error(error.application?.path, error.found.path);
 */
export class NestConflictError extends GodwitError {
  readonly code = 'GODWIT_NEST_CONFLICT';

  constructor(
    /** What the application runs on; undefined where that cannot be told, as in a bundle. */
    readonly application: NestCopy | undefined,
    /** What this library imports. */
    readonly found: NestCopy,
  ) {
    super(
      `the application runs on ${application ? show(application) : 'another copy of @nestjs/core'}, but godwit finds ${show(found)}; ` +
        'there may be only one copy, as each knows only its own classes: see who asks for which with npm ls @nestjs/core, ' +
        'give all of them the same version, and run npm dedupe',
    );
  }
}

function show({ version, path }: NestCopy): string {
  return `@nestjs/core ${version} (${path})`;
}
