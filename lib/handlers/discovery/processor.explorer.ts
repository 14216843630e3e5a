import { Injectable } from '@nestjs/common';
import { DiscoveryService, MetadataScanner } from '@nestjs/core';
import {
  type HandlerMark,
  type ListenerMark,
  type ProcessorMark,
  type ScheduleMark,
  handlerMarks,
  jobListenerMarks,
  misplacedSchedules,
  readProcessorMark,
  scheduleMarks,
  showHandle,
  showJobListener,
  showSchedule,
} from '../../decorators/metadata.js';
import { classOf, declared, methodOf, moduleOf, prototypesOf, type Class, type Wrapper } from './classes.js';
import { faults, warnings } from './faults.js';

/** A processor: one instance, its mark and its marked methods. */
export interface FoundProcessor {
  readonly className: string;
  /** If instances are created per job: an object with their prototype that was never constructed. */
  readonly instance: Record<string, any>;
  /** Whether instances are created per job or per tenant. */
  readonly isScoped: boolean;
  /** The entry of the provider in Nest's container. */
  readonly wrapper: Wrapper;
  readonly mark: ProcessorMark;
  readonly methods: readonly FoundMethod[];
}

/** A method with at least one mark of any kind. */
export interface FoundMethod {
  readonly name: string;
  readonly marks: readonly HandlerMark[];
  readonly schedules: readonly ScheduleMark[];
  /** The marks of `@OnJob`. */
  readonly listeners: readonly ListenerMark[];
}

const HOOKS = [
  'onModuleInit',
  'onApplicationBootstrap',
  'onModuleDestroy',
  'beforeApplicationShutdown',
  'onApplicationShutdown',
];

/** The result of exploring all providers. */
interface Exploration {
  readonly processors: FoundProcessor[];
  readonly faults: string[];
  readonly warnings: string[];
}

/** Finds the processors among the providers of all modules, and reports mistakes. Starts nothing. */
@Injectable()
export class ProcessorExplorer {
  constructor(
    private readonly discovery: DiscoveryService,
    private readonly scanner: MetadataScanner,
  ) {}

  explore(): Exploration {
    const found: Exploration = { processors: [], faults: [], warnings: [] };
    const modulesOf = new Map<Class, string[]>();
    // A set, because a base class is visited for each class that extends it.
    const misplaced = new Set<string>();
    for (const wrapper of this.discovery.getProviders()) {
      // An alias (`useExisting`) is the same instance under another token.
      if (wrapper.isAlias) continue;
      const type = classOf(wrapper);
      const mark = type && readProcessorMark(type);
      if (mark === undefined) warnOfReplaced(wrapper, type, found);
      if (type === undefined) continue;
      misplacedIn(type, misplaced);
      if (mark === undefined) {
        this.exploreOther(type, found);
        continue;
      }
      const modules = modulesOf.get(type);
      if (modules) modules.push(moduleOf(wrapper));
      else {
        modulesOf.set(type, [moduleOf(wrapper)]);
        this.exploreProcessor(wrapper, type, mark, found);
      }
    }
    for (const [type, modules] of modulesOf) {
      if (modules.length > 1) found.faults.push(faults.providedTwice(type.name, modules));
    }
    this.exploreControllers(found, misplaced);
    found.faults.push(...misplaced);
    return found;
  }

  private exploreProcessor(wrapper: Wrapper, type: Class, mark: ProcessorMark, found: Exploration): void {
    if (wrapper.isTransient) {
      found.faults.push(faults.transient(type.name));
    } else {
      found.faults.push(...this.hiddenOverrides(type));
      const isScoped = !wrapper.isDependencyTreeStatic();
      const methods = this.markedMethods(type);
      for (const { name, listeners } of isScoped ? methods : []) {
        const [mark] = listeners;
        if (mark) {
          const place = `${type.name}.${name}`;
          found.faults.push(faults.listenerScope(place, showJobListener(mark), type.name, 'request-scoped'));
        }
      }
      const hooks = HOOKS.filter((hook) => hook in type.prototype);
      if (isScoped && hooks.length > 0) found.warnings.push(warnings.hooksOfScoped(type.name, hooks));
      found.processors.push({
        className: type.name,
        instance: (isScoped ? Object.create(type.prototype) : wrapper.instance) as Record<string, any>,
        isScoped,
        wrapper,
        mark,
        methods,
      });
    }
  }

  /** Checks a provider without `@Processor`. Handlers or schedules in it are a mistake. */
  private exploreOther(type: Class, found: Exploration): void {
    const methods = this.markedMethods(type);
    if (methods.length === 0) return;
    const base = processorAbove(type);
    if (base) found.warnings.push(warnings.undecoratedSubclass(type.name, base.name));
    else {
      for (const method of methods) {
        found.faults.push(
          faults.withoutProcessor(`${type.name}.${method.name}`, showMarks(method), type.name),
        );
      }
    }
  }

  private exploreControllers(found: Exploration, misplaced: Set<string>): void {
    for (const wrapper of this.discovery.getControllers()) {
      const type = classOf(wrapper);
      if (type === undefined) continue;
      misplacedIn(type, misplaced);
      if (readProcessorMark(type)) found.faults.push(faults.controller(type.name));
      else this.exploreOther(type, found);
    }
  }

  private markedMethods(type: Class): FoundMethod[] {
    return this.scanner
      .getAllMethodNames(type.prototype)
      .map((name) => ({ name, ...marksOf(methodOf(type.prototype, name)) }))
      .filter(isMarked);
  }

  /** Decorators mark the function, so an override without a decorator loses the marks of the method that it hides. */
  private hiddenOverrides(type: Class): string[] {
    const hidden: string[] = [];
    for (const name of this.scanner.getAllMethodNames(type.prototype)) {
      const [nearest, ...others] = declared(type, name).map(({ place, method }) => ({
        place,
        ...marksOf(method),
      }));
      const base = others.find(isMarked);
      if (base && !isMarked(nearest!)) {
        hidden.push(faults.hiddenOverride(nearest!.place, base.place, showMarks(base)));
      } else if (nearest && nearest.schedules.length === 0) {
        const scheduled = others.find((other) => other.schedules.length > 0);
        if (scheduled) {
          const schedule = showSchedule(scheduled.schedules[0]!);
          hidden.push(faults.hiddenOverride(nearest.place, scheduled.place, schedule));
        }
      }
    }
    return hidden;
  }
}

type Marks = Omit<FoundMethod, 'name'>;

function marksOf(method: unknown): Marks {
  return {
    marks: handlerMarks.read(method),
    schedules: scheduleMarks.read(method),
    listeners: jobListenerMarks.read(method),
  };
}

function isMarked({ marks, schedules, listeners }: Marks): boolean {
  return marks.length + schedules.length + listeners.length > 0;
}

/** The decorator that messages name. */
function showMarks({ marks: [handle], schedules: [schedule], listeners: [listener] }: Marks): string {
  if (handle) return showHandle(handle);
  return schedule ? showSchedule(schedule) : showJobListener(listener!);
}

/** Adds to `misplaced` the decorators that are not on methods, but on statics, getters and so on, also of base classes. */
function misplacedIn(type: Class, misplaced: Set<string>): void {
  for (const { constructor } of prototypesOf(type)) {
    for (const mark of misplacedSchedules.read(constructor)) {
      const place = mark.key === '' ? constructor.name : `${constructor.name}.${mark.key}`;
      misplaced.add(faults.misplacedSchedule(showSchedule(mark), place, mark.misplaced));
    }
  }
}

function processorAbove(type: Class): Class | undefined {
  for (
    let above: unknown = Reflect.getPrototypeOf(type);
    typeof above === 'function';
    above = Reflect.getPrototypeOf(above)
  ) {
    if (readProcessorMark(above)) return above;
  }
  return undefined;
}

/** `overrideProvider(EmailProcessor).useValue({ … })` leaves no handlers, and nothing else warns of it. */
function warnOfReplaced(wrapper: Wrapper, type: Class | undefined, found: Exploration): void {
  const token: unknown = wrapper.token;
  if (typeof token !== 'function' || readProcessorMark(token) === undefined) return;
  // `exploreOther` reports a subclass without the decorator.
  if (type === undefined || processorAbove(type) === undefined)
    found.warnings.push(warnings.replacedProcessor(token.name));
}
