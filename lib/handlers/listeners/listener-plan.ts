import { showListener, type ListenerMark } from '../../decorators/metadata.js';
import { EVENT_TYPES, type EventType } from '../../contract/engine.js';
import { InvalidOptionError, UnknownQueueError } from '../../errors.js';
import { show } from '../../errors/show.js';
import { checkQueueName, isPlainName } from '../../job/job-id.js';
import {
  collectFaults,
  field,
  integer,
  oneOrSeveral,
  readable,
  rule,
  shape,
  type Report,
  type Rule,
} from '../../options/check.js';
import { adviceForQueues } from '../../events/event-advice.js';

/** A marked method, as it was found. */
export interface FoundListener {
  readonly className: string;
  readonly instance: Record<string, any>;
  readonly method: string;
  readonly mark: ListenerMark;
}

/** A method and the events it is called for. */
export interface ListenerPlan {
  /** `Class.method`, for messages. */
  readonly label: string;
  readonly instance: Record<string, any>;
  readonly method: string;
  readonly types: ReadonlySet<EventType>;
  readonly queues: readonly string[];
  /** How many calls may run at once. */
  readonly concurrency: number;
}

/** Whether a registered queue writes events. Undefined if its options are invalid. */
type WritesEvents = (queue: string) => boolean | undefined;

/**
 * Checks the arguments of the decorators, and reports every mistake.
 *
 * @param known Names of the registered queues.
 */
export function planListeners(
  found: readonly FoundListener[],
  known: readonly string[],
  tellsEvents: WritesEvents,
): { readonly plans: readonly ListenerPlan[]; readonly faults: readonly string[] } {
  const faults: string[] = [];
  const plans = found.flatMap(({ className, instance, method, mark }) => {
    const label = `${className}.${method}`;
    const place = `${showListener(mark)} of ${label}`;
    const { value, faults: wrong } = collectFaults((report) =>
      rule(() => readMark(mark, place, known, tellsEvents, report))(mark, place, report),
    );
    faults.push(...wrong);
    return value === undefined || wrong.length > 0 ? [] : [{ label, instance, method, ...value }];
  });
  return { plans, faults };
}

function readMark(
  { given }: ListenerMark,
  place: string,
  known: readonly string[],
  tellsEvents: WritesEvents,
  report: Report,
): Omit<ListenerPlan, 'label' | 'instance' | 'method'> {
  const [first, second] = given;
  const ofAll = given.length === 0 || isOptions(first, place);
  const types = ofAll ? EVENT_TYPES : readTypes(first, place, report);
  const options = ofAll ? first : second;
  if (options !== undefined && !isOptions(options, place)) {
    const queue = isPlainName(options, 64) ? options : 'emails';
    throw new InvalidOptionError(
      `${place}: the second argument`,
      `an object such as { queue: '${queue}' }`,
      options,
    );
  }
  const readOptions = shape({
    queue: field('queues', queuesRule(known, tellsEvents)),
    concurrency: field('concurrency', integer(1, 1_000)),
  });
  const read = options === undefined ? undefined : readOptions(options, place, report);
  return {
    types: new Set(types ?? []),
    queues: read?.queues ?? known.filter((queue) => tellsEvents(queue) ?? false),
    concurrency: read?.concurrency ?? 1,
  };
}

/** Whether the value is an options object. A string or a list names types. */
function isOptions(value: unknown, place: string): boolean {
  return typeof value === 'object' && value !== null && !readable(value, place, () => Array.isArray(value));
}

const readTypes = rule((given, place): readonly EventType[] => {
  const words = oneOrSeveral(given, place);
  const unknown = words.filter((word) => !EVENT_TYPES.includes(word as EventType));
  if (words.length > 0 && unknown.length === 0) return words as EventType[];
  const what = words.length === 0 ? 'it names no event' : `there is no event ${unknown.map(show).join(', ')}`;
  const wanted = `one or several of ${EVENT_TYPES.join(', ')}`;
  throw new InvalidOptionError(
    place,
    wanted,
    given,
    `${place}: ${what}; name ${wanted}${adviceForQueues(unknown)}`,
  );
});

function queuesRule(known: readonly string[], tellsEvents: WritesEvents): Rule<readonly string[]> {
  return (given, path, report) => {
    const wrong = (received: unknown, why: string) =>
      report(
        new InvalidOptionError(
          path,
          'the name of a registered queue, or several',
          received,
          `${path}: ${why}`,
        ),
      );
    const names = oneOrSeveral(given, path);
    if (names.length === 0) wrong(given, 'it names no queue; name one or several, or leave it out for all');
    for (const name of names) {
      try {
        const queue = checkQueueName(name);
        if (!known.includes(queue)) wrong(name, new UnknownQueueError(queue, known).message);
        else if (tellsEvents(queue) === false)
          wrong(
            name,
            `queue '${queue}' writes no events (events: false); switch them on, or leave the queue out`,
          );
      } catch (error) {
        wrong(name, (error as Error).message);
      }
    }
    return names as string[];
  };
}
