import type { Attributes } from '@opentelemetry/api';

/** The name of the tracer and of the meter. */
export const LIBRARY = 'godwit';

/**
 * Attributes of all spans and metrics. The conventions have renamed `messaging.system` to `messaging.system.name`. Backends read
 * either name, so both are set.
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
