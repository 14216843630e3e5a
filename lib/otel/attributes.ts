import type { Attributes } from '@opentelemetry/api';

/** The name of the tracer and of the meter. */
export const LIBRARY = 'godwit';

/**
 * What all spans and metrics of messaging have. The conventions have renamed `messaging.system` to `messaging.system.name`; backends read either, so
 * both are there.
 */
export function messaging(queue: string, operation: string, type: 'send' | 'create' | 'process'): Attributes {
  return {
    'messaging.system': LIBRARY,
    'messaging.system.name': LIBRARY,
    'messaging.destination.name': queue,
    'messaging.operation.name': operation,
    'messaging.operation.type': type,
  };
}
