import { showJobListener, type ListenerMark } from '../../decorators/metadata.js';
import { InvalidOptionError } from '../../errors.js';
import { show } from '../../errors/show.js';
import { checkJobName } from '../../job/job-id.js';
import { collectFaults, field, oneOrSeveral, refuse, rule, shape } from '../../options/check.js';
import { JOB_EVENT_TYPES, type JobEventType, type JobListener } from '../../worker/job-listeners.js';
import type { FoundProcessor } from '../discovery/processor.explorer.js';
import { adviceForJobs } from '../../events/event-advice.js';

const readOptions = shape({ name: field('names', rule(readNames)) });

/** The `@OnJob` methods of a processor. Mistakes are added to the faults. */
export function jobListenersOf(processor: FoundProcessor, found: string[]): JobListener[] {
  const { className, instance, isScoped } = processor;
  // A scoped processor with `@OnJob` is reported elsewhere.
  if (isScoped) return [];
  return processor.methods.flatMap(({ name: method, listeners }) =>
    listeners.flatMap((mark): JobListener[] => {
      const label = `${className}.${method}`;
      const { value, faults } = collectFaults((report) =>
        rule((_, place) => readMark(mark, place))(mark, `${showJobListener(mark)} of ${label}`, report),
      );
      found.push(...faults);
      // Looked up at each call, so that a test can replace it on the instance.
      return value ? [{ label, ...value, call: (event) => instance[method](event) }] : [];
    }),
  );
}

function readMark({ given }: ListenerMark, place: string): Pick<JobListener, 'types' | 'names'> {
  const [first, options] = given;
  const types = oneOrSeveral(first, place);
  const unknown = types.filter((type) => !JOB_EVENT_TYPES.includes(type as JobEventType));
  if (types.length === 0 || unknown.length > 0) {
    const what = types.length === 0 ? 'it names no type' : `there is no type ${unknown.map(show).join(', ')}`;
    const wanted = `one or several of ${JOB_EVENT_TYPES.join(', ')}`;
    const advice = adviceForJobs(unknown);
    throw new InvalidOptionError(place, wanted, first, `${place}: ${what}; name ${wanted}${advice}`);
  }
  const read = options === undefined ? undefined : readOptions(options, place, refuse);
  return { types: new Set(types as JobEventType[]), names: read?.names };
}

function readNames(given: unknown, path: string): readonly string[] {
  const names = oneOrSeveral(given, path);
  if (names.length > 0) return names.map((name) => checkJobName(name));
  throw new InvalidOptionError(path, 'the name of a job, or several', given);
}
