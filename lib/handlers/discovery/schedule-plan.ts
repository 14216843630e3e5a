import { showSchedule, type HandlerMark, type ScheduleMark } from '../../decorators/metadata.js';
import { show } from '../../errors/show.js';
import { messageOf } from '../../errors/thrown.js';
import { checkDefinition, type AnyDefinition, checkGiven } from '../../job/define-job.js';
import { fieldsOf, hasFields, unknownField } from '../../job/fields.js';
import { ANY_NAME, byNarrowness, fits, isPattern, normalized } from '../../job/name-pattern.js';
import { collectFaults, readable } from '../../options/check.js';
import type { DeclaredSchedule, QueueSchedules } from '../../schedule/declarer.js';
import { checkScheduleId, checkScheduleRule } from '../../schedule/check.js';
import { makeSchedule, RULE_FIELDS } from '../../schedule/record.js';
import { faults } from './faults.js';
import type { OptionsOf } from './handler.registry.js';
import type { FoundMethod, FoundProcessor } from './processor.explorer.js';
import { readGroup } from './queue-group.js';

/** A method that handles or is scheduled, and the registered queues its class works on. */
interface Place {
  readonly label: string;
  readonly method: FoundMethod;
  readonly queues: readonly string[];
}

/** The fields of a `@Schedule` except its rule, unchecked. */
type Given = Readonly<Record<'id' | 'name' | 'data' | 'options' | 'queue' | 'rule', unknown>>;

const FIELDS: readonly string[] = ['id', 'name', 'data', 'options', 'queue', ...RULE_FIELDS];

/**
 * Checks every `@Schedule`, and reports every mistake in them. `planPools` reports mistakes in the processors themselves.
 */
export async function planSchedules(
  processors: readonly FoundProcessor[],
  known: readonly string[],
  optionsOf: OptionsOf,
): Promise<{ readonly queues: readonly QueueSchedules[]; readonly faults: readonly string[] }> {
  const places = processors.flatMap(({ className, mark, methods }): Place[] => {
    const group = readGroup(className, mark.queues, known, []);
    const queues = (group?.queues ?? [])
      .map(({ name }) => name)
      .filter((name) => optionsOf(name) !== undefined);
    return methods.map((method) => ({ label: `${className}.${method.name}`, method, queues }));
  });
  const planner = new Planner(places, optionsOf);
  for (const place of places) for (const mark of place.method.schedules) await planner.plan(place, mark);
  planner.refuseRepeated();
  const queues = [...planner.planned].map(([queue, schedules]) => ({ queue, schedules }));
  return { queues, faults: planner.faults };
}

class Planner {
  readonly faults: string[] = [];
  readonly planned = new Map<string, DeclaredSchedule[]>();

  constructor(
    private readonly places: readonly Place[],
    private readonly optionsOf: OptionsOf,
  ) {
    for (const { queues } of places) for (const queue of queues) this.planned.set(queue, []);
  }

  async plan(place: Place, mark: ScheduleMark): Promise<void> {
    const text = showSchedule(mark);
    const label = `${text} of ${place.label}`;
    const before = this.faults.length;
    const given = this.split(mark.given, label);
    if (given === undefined) return;
    this.faults.push(...collectFaults((report) => checkScheduleRule(given.rule, label, report)).faults);
    if (place.method.marks.length === 0) this.faults.push(faults.scheduleWithoutHandler(text, place.label));
    const queue = this.queueOf(place, given, text);
    const name = this.nameOf(place, given, text);
    if (this.faults.length > before || queue === undefined || name === undefined) return;
    if (this.isForOthers(place, queue, name)) {
      this.faults.push(faults.scheduleForOthers(text, place.label, name));
      return;
    }
    try {
      const id = checkScheduleId(given.id ?? name, `${label}.id`);
      const template = { name, data: given.data, options: given.options };
      const made = makeSchedule(given.rule, template, this.optionsOf(queue)!, label);
      const handle = place.method.marks.find((one) => one.jobName === name);
      if (handle?.definition) await this.validateData(handle.definition, given.data ?? null);
      this.planned.get(queue)!.push({ id, label, made });
    } catch (error) {
      this.addFault(label, error);
    }
  }

  private validateData(definition: AnyDefinition, data: unknown): Promise<unknown> {
    return checkGiven(checkDefinition(definition, '@Handle()'), data, JSON.stringify(data));
  }

  refuseRepeated(): void {
    for (const [queue, schedules] of this.planned) {
      const byId = new Map<string, string[]>();
      for (const { id, label } of schedules) byId.set(id, [...(byId.get(id) ?? []), label]);
      for (const [id, labels] of byId) {
        if (labels.length > 1) this.faults.push(faults.duplicateSchedule(queue, id, labels));
      }
    }
  }

  /** Separates the rule from the other fields. If the value is not an object, the check of the rule refuses it. */
  private split(given: unknown, label: string): Given | undefined {
    try {
      return readable(given, label, () => {
        const isRecord = hasFields(given);
        const { id, name, data, options, queue, ...rule } = Object.fromEntries(
          isRecord ? fieldsOf(given, FIELDS) : [],
        );
        for (const key of Object.keys(rule)) {
          if (FIELDS.includes(key)) continue;
          this.faults.push(unknownField(label, key, FIELDS).message);
          delete rule[key];
        }
        return { id, name, data, options, queue, rule: isRecord ? rule : given };
      });
    } catch (error) {
      this.addFault(label, error);
      return undefined;
    }
  }

  private queueOf({ label, queues }: Place, { queue }: Given, text: string): string | undefined {
    if (queue === undefined) {
      if (queues.length > 1) this.faults.push(faults.scheduleQueue(text, label, queues));
      return queues[0];
    }
    const known = queues.find((one) => one === queue);
    if (known === undefined && queues.length > 0)
      this.faults.push(faults.scheduleOtherQueue(text, label, show(queue), queues));
    return known;
  }

  /** The name of its jobs: the given name, or that of the handler if the method handles exactly one. */
  private nameOf({ label, method }: Place, { name }: Given, text: string): string | undefined {
    if (typeof name === 'string') return name;
    if (name !== undefined) {
      this.faults.push(faults.scheduleNameType(text, label, show(name)));
      return undefined;
    }
    const [first, ...others] = method.marks;
    if (others.length > 0) this.faults.push(faults.scheduleName(text, label, 'handles several names'));
    else if (first?.jobName === null || first?.jobName === ANY_NAME)
      this.faults.push(faults.scheduleName(text, label, 'handles every other name'));
    else if (first && isByPattern(first))
      this.faults.push(faults.scheduleName(text, label, 'handles names by pattern'));
    else return typeof first?.jobName === 'string' ? first.jobName : undefined;
    return undefined;
  }

  /** Whether its jobs would go to another method, or to none. */
  private isForOthers({ method }: Place, queue: string, name: string): boolean {
    const all = this.places
      .filter((place) => place.queues.includes(queue))
      .flatMap((place) => place.method.marks);
    const exact = all.filter((mark) => mark.jobName === name && !isByPattern(mark));
    const patterns = all.filter((mark) => isByPattern(mark) && fits(patternOf(mark), name));
    const [winner] = patterns.map(patternOf).toSorted(byNarrowness);
    const own = exact.length > 0 ? exact : patterns.filter((mark) => patternOf(mark) === winner);
    return !method.marks.some((mark) => own.includes(mark));
  }

  private addFault(label: string, error: unknown): void {
    const text = messageOf(error);
    // Errors of options name a path. Here the fields of rule and template are on one level, so the path is shortened.
    const message = text.replace(`${label}.rule`, label).replace(`${label}.template`, label);
    this.faults.push(message.startsWith(label) ? message : faults.argument(label, message));
  }
}

function isByPattern({ jobName, definition }: HandlerMark): boolean {
  return jobName === null || (definition === undefined && typeof jobName === 'string' && isPattern(jobName));
}

function patternOf({ jobName }: HandlerMark): string {
  return jobName === null ? ANY_NAME : normalized(jobName as string);
}
