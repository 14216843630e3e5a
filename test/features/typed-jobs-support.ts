import { expect } from 'vitest';
import { Handle } from '#lib/decorators/handle.decorator.js';
import { Processor } from '#lib/decorators/processor.decorator.js';
import { SchemaViolationError, type GodwitError } from '#lib/errors.js';
import type { AnyDefinition } from '#lib/job/define-job.js';

/** A processor that answers what its handler got. */
export function echoOf(definition: AnyDefinition) {
  @Processor('work')
  class Echo {
    @Handle(definition)
    echo({ data }: { data: unknown }) {
      return { data, type: data instanceof Date ? 'Date' : typeof data };
    }
  }
  return Echo;
}

export const violationOf = (run: Promise<unknown>): Promise<SchemaViolationError> =>
  run.then(
    () => expect.fail('it was taken'),
    (error: unknown) => {
      expect(error).toBeInstanceOf(SchemaViolationError);
      return error as SchemaViolationError;
    },
  );

export const errorOf = (run: Promise<unknown>): Promise<GodwitError> =>
  run.then(
    () => expect.fail('it was taken'),
    (error: GodwitError) => error,
  );
