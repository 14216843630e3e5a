import type { ContextId, ExternalContextCreator } from '@nestjs/core';
import {
  EXCEPTION_FILTERS_METADATA,
  GUARDS_METADATA,
  INTERCEPTORS_METADATA,
  PIPES_METADATA,
  ROUTE_ARGS_METADATA,
} from '@nestjs/common/constants.js';
import type { Handler } from '../worker/handler.js';
import { standInFor } from './context-creator.js';
import { jobParams } from './job-params.js';
import { QUEUE_CONTEXT, QueueExecutionContext } from './queue-context.js';

/** A method that handles jobs, on one instance of its class. */
export interface HandlerTarget {
  readonly instance: Record<string, any>;
  readonly method: string;
  /** `Class.method`, for messages. */
  readonly label: string;
  /** Where the instance was made for one context: that context, and the id of the provider it was made from. */
  readonly contextId?: ContextId;
  readonly inquirerId?: string;
}

const OPTIONS = { guards: true, interceptors: true, filters: false } as const;

/** Calls the method through its guards, interceptors, pipes and parameter decorators. */
export function enhancedHandler(creator: ExternalContextCreator, target: HandlerTarget): Handler {
  const { instance, method, label, contextId, inquirerId } = target;
  const standIn = standInFor(methodOn(target), method);
  const call = creator.create(
    instance,
    standIn,
    method,
    ROUTE_ARGS_METADATA,
    jobParams,
    contextId,
    inquirerId,
    OPTIONS,
    QUEUE_CONTEXT,
  );
  return (job) => {
    job.stage = 'before';
    return call(job, new QueueExecutionContext(job, label));
  };
}

const KINDS = [GUARDS_METADATA, INTERCEPTORS_METADATA, PIPES_METADATA, EXCEPTION_FILTERS_METADATA];

/** Whether the method can be called by itself: nothing stands on it or on its class that Nest would have to do. */
export function isPlain(creator: ExternalContextCreator, target: HandlerTarget): boolean {
  const { instance, method } = target;
  const places = [instance.constructor, methodOn(target)];
  if (KINDS.some((kind) => places.some((place) => Reflect.hasMetadata(kind, place)))) return false;
  return (
    creator.getMetadata(instance, method, ROUTE_ARGS_METADATA, jobParams, QUEUE_CONTEXT).argsLength === 0
  );
}

/** That of the class: decorators stand on it, whatever the instance has in its place. */
function methodOn({ instance, method }: HandlerTarget): (...args: any[]) => unknown {
  return (Object.getPrototypeOf(instance) as Record<string, any>)[method];
}
