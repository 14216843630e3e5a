import { ContextIdFactory, ModuleRef, type ContextId, type DiscoveryService } from '@nestjs/core';
import { Injector } from '@nestjs/core/injector/injector.js';
import { REQUEST_CONTEXT_ID } from '@nestjs/core/router/request/request-constants.js';
import { ProcessorScopeError } from '../errors.js';
import { read } from '../errors/thrown.js';
import type { HandledJob, Handler } from '../worker/handler.js';
import type { HandlerMaker } from './handler-maker.js';
import type { HandlerTarget } from './context-creator.js';

type Wrapper = ReturnType<DiscoveryService['getProviders']>[number];

/** A method of a processor that has an instance per job, or per tenant. */
interface ScopedTarget extends HandlerTarget {
  /** The entry of the processor in Nest's container. */
  readonly wrapper: Wrapper;
  readonly className: string;
  /** An object with the prototype of the instances that was never constructed. */
  readonly instance: Record<string, any>;
}

/**
 * Creates an instance for each job, with its dependencies and the enhancers of the handler, and calls the handler on it. Durable
 * instances are created once per tenant, as the `ContextIdStrategy` of the application decides.
 */
export function scopedHandler(maker: HandlerMaker, target: ScopedTarget): Handler {
  maker.check(target);
  const trees = new Trees(target);
  const callOn = callsOn(maker, target, trees);
  return async (job) => {
    job.stage = 'before';
    const contextId = trees.contextOf(job);
    const instance = await trees.instanceFor(job, contextId);
    // The run was aborted while its instance was created.
    if (job.aborted) throw job.aborted;
    job.stage = undefined;
    return callOn(instance, contextId)(job);
  };
}

type CallOn = (instance: Record<string, any>, contextId: ContextId) => Handler;

function callsOn(maker: HandlerMaker, target: ScopedTarget, trees: Trees): CallOn {
  const { wrapper, method, label, moduleKey } = target;
  const made = { method, label, moduleKey };
  if (maker.isPlain(target)) return (instance) => maker.direct({ ...made, instance });
  // The enhancers of a shared instance are durable too. Otherwise the instance would not be shared.
  const shared = new WeakMap<object, Handler>();
  return (instance, contextId) => {
    const known = shared.get(instance);
    if (known) return known;
    const handler = maker.enhanced({ ...made, instance, contextId, inquirerId: wrapper.id });
    if (trees.isShared(contextId)) shared.set(instance, handler);
    return handler;
  };
}

/** The dependency trees of one processor. */
class Trees {
  private readonly host: NonNullable<Wrapper['host']>;
  private readonly moduleRef: ModuleRef;
  private readonly injector: Injector;
  private readonly isDurable: boolean;

  constructor(private readonly target: ScopedTarget) {
    const { wrapper } = target;
    this.host = wrapper.host!;
    this.moduleRef = this.host.getProviderByKey<ModuleRef>(ModuleRef).instance;
    // The injector of the module is not used, because it waits for providers that are being loaded, and one of those may wait
    // for this provider.
    this.injector = new Injector(injectorOptions(this.moduleRef));
    this.isDurable = wrapper.isDependencyTreeDurable();
  }

  /** The context of the job. From then on `ContextIdFactory.getByRequest(job)` returns it, as for a request. */
  contextOf(job: HandledJob): ContextId {
    try {
      const isNew = !(REQUEST_CONTEXT_ID in job);
      const contextId = ContextIdFactory.getByRequest(job);
      if (isNew) {
        Object.defineProperty(job, REQUEST_CONTEXT_ID, { value: contextId });
        // An instance that several jobs share must not be injected with one of them.
        const request = this.isShared(contextId) ? contextId.payload : job;
        this.moduleRef.registerRequestByContextId(request, contextId);
      }
      return contextId;
    } catch (error) {
      const what = 'the ContextIdStrategy of the application, which gets jobs as well as requests, failed';
      throw this.failure(job, what, error);
    }
  }

  /** Whether other jobs share the instance of this context. */
  isShared(contextId: ContextId): boolean {
    return this.isDurable && contextId.getParent !== undefined;
  }

  async instanceFor(job: HandledJob, contextId: ContextId): Promise<Record<string, any>> {
    const { wrapper, className } = this.target;
    const { host } = this;
    try {
      const { instance } = wrapper;
      return await this.injector.loadPerContext(instance, host, host.providers, contextId, wrapper);
    } catch (error) {
      throw this.failure(job, `${className} could not be created`, error);
    }
  }

  /**
   * The error of the attempt. Errors that change the outcome, such as `UnrecoverableError` or the reason of the signal, are kept.
   */
  private failure(job: HandledJob, what: string, error: unknown): unknown {
    const code = read(error, 'code');
    if (typeof code === 'string' && code.startsWith('GODWIT_')) return error;
    return new ProcessorScopeError(this.target.className, job.queue, job.id, what, error);
  }
}

/** Options of the application that can decorate the instances that Nest creates. */
function injectorOptions(moduleRef: ModuleRef): ConstructorParameters<typeof Injector>[0] {
  type Options = { contextOptions?: { instrument?: { instanceDecorator?: (instance: unknown) => unknown } } };
  const { container } = moduleRef as unknown as { container?: Options };
  const instanceDecorator = container?.contextOptions?.instrument?.instanceDecorator;
  return { preview: false, ...(instanceDecorator && { instanceDecorator }) };
}
