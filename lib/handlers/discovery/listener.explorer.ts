import { Injectable } from '@nestjs/common';
import { DiscoveryService, MetadataScanner } from '@nestjs/core';
import { listenerMarks, showListener } from '../../decorators/metadata.js';
import type { FoundListener } from '../listeners/listener-plan.js';
import { classOf, declared, methodOf, moduleOf, type Class, type Wrapper } from './classes.js';
import type { DrainTarget } from './drain-hook.js';
import { faults, warnings } from './faults.js';

/** The result of exploring all providers and controllers. */
interface ListenerExploration {
  readonly listeners: FoundListener[];
  /** The classes of these methods. */
  readonly providers: DrainTarget[];
  readonly faults: string[];
  readonly warnings: string[];
}

/** Finds the methods with `@OnQueueEvent` among the providers and controllers of all modules. Starts nothing. */
@Injectable()
export class ListenerExplorer {
  constructor(
    private readonly discovery: DiscoveryService,
    private readonly scanner: MetadataScanner,
  ) {}

  explore(): ListenerExploration {
    const found: ListenerExploration = { listeners: [], providers: [], faults: [], warnings: [] };
    const modulesOf = new Map<Class, string[]>();
    const instances = new Set<unknown>();
    // A set, because a class is visited again for each class that extends it.
    const hidden = new Set<string>();
    for (const wrapper of [...this.discovery.getProviders(), ...this.discovery.getControllers()]) {
      // An alias (`useExisting`) is the same instance under another token.
      const type = wrapper.isAlias ? undefined : classOf(wrapper);
      if (type === undefined) continue;
      const before = modulesOf.get(type);
      for (const fault of before === undefined ? this.hiddenOverrides(type) : []) hidden.add(fault);
      const methods = this.markedMethods(type);
      if (methods.length === 0) continue;
      if (!isSingleton(wrapper)) {
        if (before === undefined)
          found.faults.push(...methods.map((name) => scopeFault(wrapper, type, name)));
      } else if (!instances.has(wrapper.instance)) {
        instances.add(wrapper.instance);
        found.listeners.push(...methods.flatMap((name) => listenersOf(wrapper, type, name)));
        const instance = wrapper.instance as Record<string, any>;
        found.providers.push({ className: type.name, instance, isScoped: false, wrapper });
      } else continue;
      modulesOf.set(type, [...(before ?? []), moduleOf(wrapper)]);
    }
    found.faults.push(...hidden);
    for (const [type, modules] of modulesOf) {
      if (modules.length > 1) found.warnings.push(warnings.listenerTwice(type.name, modules));
    }
    return found;
  }

  private markedMethods(type: Class): string[] {
    return this.scanner
      .getAllMethodNames(type.prototype)
      .filter((name) => listenerMarks.read(methodOf(type.prototype, name)).length > 0);
  }

  /** Decorators mark the function, so an override without a decorator loses the marks of the method that it hides. */
  private hiddenOverrides(type: Class): string[] {
    return this.scanner.getAllMethodNames(type.prototype).flatMap((name) => {
      const [nearest, ...others] = declared(type, name).map(({ place, method }) => ({
        place,
        marks: listenerMarks.read(method),
      }));
      const base = others.find(({ marks }) => marks.length > 0);
      if (!base || !nearest || nearest.marks.length > 0) return [];
      return [faults.hiddenOverride(nearest.place, base.place, showListener(base.marks[0]!))];
    });
  }
}

function isSingleton(wrapper: Wrapper): boolean {
  return !wrapper.isTransient && wrapper.isDependencyTreeStatic();
}

function listenersOf(
  wrapper: Wrapper,
  { name: className, prototype }: Class,
  method: string,
): FoundListener[] {
  const instance = wrapper.instance as Record<string, any>;
  return listenerMarks.read(methodOf(prototype, method)).map((mark) => ({
    className,
    instance,
    method,
    mark,
  }));
}

function scopeFault(wrapper: Wrapper, { name: className, prototype }: Class, method: string): string {
  const [mark] = listenerMarks.read(methodOf(prototype, method));
  const scope = wrapper.isTransient ? 'transient' : 'request-scoped';
  return faults.listenerScope(`${className}.${method}`, showListener(mark!), className, scope);
}
