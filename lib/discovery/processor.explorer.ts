import { Injectable } from '@nestjs/common';
import { DiscoveryService, MetadataScanner } from '@nestjs/core';
import type { HandlerMark, ProcessorMark } from '../decorators/metadata.js';
import { readHandlerMarks, readProcessorMark, showHandle } from '../decorators/metadata.js';
import { faults, warnings } from './faults.js';

type Wrapper = ReturnType<DiscoveryService['getProviders']>[number];
type Class = { readonly name: string; readonly prototype: object };

/** A processor as it was found: one instance, its mark and its marked methods. */
export interface FoundProcessor {
  readonly className: string;
  readonly instance: Record<string, any>;
  readonly mark: ProcessorMark;
  readonly methods: readonly FoundMethod[];
}

export interface FoundMethod {
  readonly name: string;
  readonly marks: readonly HandlerMark[];
}

/** What one look at all providers brought. */
export interface Exploration {
  readonly processors: FoundProcessor[];
  readonly faults: string[];
  readonly warnings: string[];
}

/** Finds the processors among the providers of all modules, and says what cannot be one. Starts nothing. */
@Injectable()
export class ProcessorExplorer {
  constructor(
    private readonly discovery: DiscoveryService,
    private readonly scanner: MetadataScanner,
  ) {}

  explore(): Exploration {
    const found: Exploration = { processors: [], faults: [], warnings: [] };
    const modulesOf = new Map<Class, string[]>();
    for (const wrapper of this.discovery.getProviders()) {
      // An alias (`useExisting`) is the same instance under another token.
      const type = wrapper.isAlias ? undefined : classOf(wrapper);
      if (type === undefined) continue;
      const mark = readProcessorMark(type);
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
    this.exploreControllers(found);
    return found;
  }

  private exploreProcessor(wrapper: Wrapper, type: Class, mark: ProcessorMark, found: Exploration): void {
    if (wrapper.isTransient) {
      found.faults.push(faults.transient(type.name));
    } else if (!wrapper.isDependencyTreeStatic()) {
      found.faults.push(faults.requestScoped(type.name));
    } else {
      found.faults.push(...this.hiddenOverrides(type));
      found.processors.push({
        className: type.name,
        instance: wrapper.instance as Record<string, any>,
        mark,
        methods: this.markedMethods(type),
      });
    }
  }

  /** A provider that is no processor: fine, unless somebody seems to think it is one. */
  private exploreOther(type: Class, found: Exploration): void {
    const methods = this.markedMethods(type);
    if (methods.length === 0) return;
    const base = processorAbove(type);
    if (base) found.warnings.push(warnings.undecoratedSubclass(type.name, base.name));
    else {
      for (const method of methods) {
        const handle = showHandle(method.marks[0]!);
        found.faults.push(faults.withoutProcessor(`${type.name}.${method.name}`, handle, type.name));
      }
    }
  }

  private exploreControllers(found: Exploration): void {
    for (const wrapper of this.discovery.getControllers()) {
      const type = classOf(wrapper);
      if (type === undefined) continue;
      if (readProcessorMark(type)) found.faults.push(faults.controller(type.name));
      else this.exploreOther(type, found);
    }
  }

  private markedMethods(type: Class): FoundMethod[] {
    return this.scanner
      .getAllMethodNames(type.prototype)
      .map((name) => ({ name, marks: readHandlerMarks((type.prototype as Record<string, unknown>)[name]) }))
      .filter((method) => method.marks.length > 0);
  }

  /** Marks live on the function, so an override that is not marked itself silently loses the one it hides. */
  private hiddenOverrides(type: Class): string[] {
    const hidden: string[] = [];
    for (const name of this.scanner.getAllMethodNames(type.prototype)) {
      const owners = prototypesOf(type).filter((prototype) => Object.hasOwn(prototype, name));
      const [nearest, ...others] = owners.map((prototype) => ({
        place: `${prototype.constructor.name}.${name}`,
        marks: readHandlerMarks((prototype as Record<string, unknown>)[name]),
      }));
      const base = others.find((other) => other.marks.length > 0);
      if (base && nearest!.marks.length === 0) {
        hidden.push(faults.hiddenOverride(nearest!.place, base.place, showHandle(base.marks[0]!)));
      }
    }
    return hidden;
  }
}

/** The class behind a provider, also one made by a factory or given as a value, whatever that value is. */
function classOf(wrapper: Wrapper): Class | undefined {
  try {
    const instance: unknown = wrapper.instance;
    const type: unknown =
      typeof instance === 'object' && instance !== null
        ? Reflect.getPrototypeOf(instance)?.constructor
        : wrapper.metatype;
    return typeof type === 'function' && typeof type.prototype === 'object' && type.prototype !== null
      ? type
      : undefined;
  } catch {
    // A value that may not be looked at (a strict mock, a revoked proxy) is no processor.
    return undefined;
  }
}

function moduleOf(wrapper: Wrapper): string {
  return wrapper.host?.name ?? 'a module without a name';
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

function prototypesOf(type: Class): object[] {
  const chain: object[] = [];
  for (
    let prototype: object | null = type.prototype;
    prototype && prototype !== Object.prototype;
    prototype = Reflect.getPrototypeOf(prototype)
  ) {
    chain.push(prototype);
  }
  return chain;
}
