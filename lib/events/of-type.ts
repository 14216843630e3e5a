import { filter, type OperatorFunction } from 'rxjs';
import { EVENT_TYPES, type EventType } from '../contract/engine.js';
import { InvalidOptionError } from '../errors.js';
import type { EventOf, QueueEvent } from './queue-event.js';

/**
 * RxJS operator that lets only events of these types through, and narrows to them.
 *
 * @throws InvalidOptionError for a type that does not exist.
 * @example
 * events.all().pipe(ofType('dead')).subscribe((event) => pager.alert(event.queue, event.reason));
 */
export function ofType<Type extends EventType>(
  ...types: Type[]
): OperatorFunction<QueueEvent, EventOf<Type>> {
  const wanted = setOfTypes(types);
  return filter((event: QueueEvent): event is EventOf<Type> => wanted.has(event.type));
}

/** @throws InvalidOptionError for a type that does not exist. */
export function setOfTypes(types: readonly EventType[]): ReadonlySet<EventType> {
  const wanted = new Set(types);
  for (const type of wanted) {
    if (!EVENT_TYPES.includes(type)) {
      throw new InvalidOptionError('ofType()', `one of ${EVENT_TYPES.join(', ')}`, type);
    }
  }
  return wanted;
}
