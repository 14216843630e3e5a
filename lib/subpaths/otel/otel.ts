import { randomBytes } from 'node:crypto';
import {
  context,
  createContextKey,
  INVALID_SPAN_CONTEXT,
  isSpanContextValid,
  propagation,
  ROOT_CONTEXT,
  SpanKind,
  SpanStatusCode,
  trace,
  TraceFlags,
  type Context,
  type Span,
  type Tracer,
} from '@opentelemetry/api';
import { GodwitError } from '../../errors.js';
import { show } from '../../errors/show.js';
import { NO_HEADERS, type HeadersContext, type JobHeaders } from '../../job/headers.js';
import type { FailureRecord } from '../../job/outcome.js';
import type {
  QueueTelemetry,
  RunTrace,
  TelemetrySource,
  TracedAdd,
  TracedEnd,
  TracedJob,
  TracedRun,
} from '../../options/telemetry.js';
import { LIBRARY, messaging } from './attributes.js';
import { WorkMeter } from './metrics.js';
import { checkOtel, type CheckedOtel, type OtelOptions } from './options.js';

/**
 * The key with which `suppressTracing` of the SDK marks a context, so that nothing is traced in it. Keys are found by their name.
 */
const SUPPRESSED = createContextKey('OpenTelemetry SDK Context Key SUPPRESS_TRACING');
/** A context for Redis commands. They must not be children of a span of the application, because many jobs share each command. */
const INTERNAL = ROOT_CONTEXT.setValue(SUPPRESSED, true);
/** Context key for an `addBulk` with a span for each job: the number of spans created so far. */
const CREATED = createContextKey('godwit spans of one bulk');
const MAX_CREATED = 100;
/** The key under which a context holds its span. The API does not export it. */
const SPAN_KEY = (() => {
  let found: symbol | undefined;
  const probe: Context = {
    getValue: () => undefined,
    deleteValue: () => probe,
    setValue: (key) => ((found = key), probe),
  };
  trace.setSpan(probe, trace.wrapSpanContext(INVALID_SPAN_CONTEXT));
  return found;
})();
/** Context key that marks a call of `addAndWait`. */
const AWAITED = createContextKey('godwit caller that waits');

/**
 * Traces and metrics by OpenTelemetry, with its conventions for messaging. Each call that adds jobs has a span `add <queue>`,
 * each run a span `process <queue>`. The headers `traceparent` and `tracestate` of the job link them across processes. Without an
 * SDK it does nothing. Start the SDK before the application.
 *
 * @throws {InvalidOptionError}
 * @example
 * QueueModule.forRoot({ connection: process.env.REDIS_URL!, telemetry: otel() });
 */
export function otel(options: OtelOptions = {}): QueueTelemetry {
  return new OpenTelemetry(checkOtel(options));
}

class OpenTelemetry implements QueueTelemetry {
  private readonly tracer: Tracer;
  /** Null if nobody records metrics. */
  private work: WorkMeter | null | undefined;

  constructor(private readonly options: CheckedOtel) {
    this.tracer = (options.tracerProvider ?? trace.getTracerProvider()).getTracer(LIBRARY);
  }

  readonly headers = ({ queue, name }: HeadersContext): JobHeaders | undefined => {
    let active = context.active();
    const created = active.getValue(CREATED) as { count: number } | undefined;
    if (created && created.count < MAX_CREATED) {
      created.count += 1;
      const attributes = { ...messaging(queue, 'create', 'create'), 'godwit.job.name': name };
      const span = this.tracer.startSpan(`create ${queue}`, { kind: SpanKind.PRODUCER, attributes }, active);
      span.end();
      active = trace.setSpan(active, span);
    }
    // A link to a span that is not sampled leads nowhere, and would add bytes to every job.
    const span = trace.getSpanContext(active);
    const isSampled = span !== undefined && (span.traceFlags & TraceFlags.SAMPLED) !== 0;
    const isAwaited = active.getValue(AWAITED) === true;
    if (this.options.onlyLinks && !isAwaited && !isSampled && !propagation.getBaggage(active))
      return undefined;
    const headers: Record<string, string> = {};
    propagation.inject(active, headers);
    return Object.keys(headers).length > 0 ? headers : undefined;
  };

  async adding<T>(
    call: TracedAdd,
    send: () => Promise<T>,
    read: (answer: T) => readonly TracedJob[],
  ): Promise<T> {
    const { queue, name, count, awaits } = call;
    const start = performance.now();
    const parent = context.active();
    const attributes = messaging(queue, 'add', 'send');
    if (name !== null) attributes['godwit.job.name'] = name;
    if (count !== null) attributes['messaging.batch.message_count'] = count;
    const span = this.tracer.startSpan(`add ${queue}`, { kind: SpanKind.PRODUCER, attributes }, parent);
    let errorType: string | undefined;
    try {
      const answer = await context.with(this.contextOf(call, trace.setSpan(parent, span)), send);
      const [job] = count === null && !awaits ? read(answer) : [];
      if (job) {
        span.setAttribute('messaging.message.id', job.id);
        if (job.duplicate) span.setAttribute('godwit.job.duplicate', true);
      }
      return answer;
    } catch (error) {
      errorType = typeOf(error);
      fail(span, errorType, failureOf(error));
      throw error;
    } finally {
      span.end();
      this.meter?.added(call, (performance.now() - start) / 1_000, errorType);
    }
  }

  running(run: TracedRun, worker: string): RunTrace {
    const { queue, id, name, attempt, attempts, headers, waitedMs, stalls } = run;
    const carried = headers === NO_HEADERS ? ROOT_CONTEXT : propagation.extract(ROOT_CONTEXT, headers);
    const creation = trace.getSpanContext(carried);
    const isKnown = creation !== undefined && isSpanContextValid(creation);
    const isChild = isKnown && (run.awaited || this.options.relationOf(run) === 'parent');
    const base = isChild || !creation ? carried : trace.deleteSpan(carried);
    this.meter?.began(run);
    if (!isChild && !this.isChosen(run)) return new UntracedRun(base);
    const attributes = messaging(queue, 'process', 'process');
    attributes['messaging.message.id'] = id;
    attributes['messaging.client.id'] = worker;
    attributes['godwit.job.name'] = name;
    attributes['godwit.job.attempt'] = attempt;
    attributes['godwit.job.attempts'] = attempts;
    if (waitedMs !== undefined) attributes['godwit.job.wait_ms'] = waitedMs;
    if (stalls > 0) attributes['godwit.job.stalls'] = stalls;
    const links = isKnown && !isChild ? [{ context: creation }] : [];
    const span = this.tracer.startSpan(
      `process ${queue}`,
      { kind: SpanKind.CONSUMER, attributes, links },
      base,
    );
    return new SpanOfRun(span, trace.setSpan(base, span));
  }

  ended(queue: string, name: string, end: TracedEnd): void {
    this.meter?.ended(queue, name, end);
  }

  internal<T>(work: () => T): T {
    return context.with(INTERNAL, work);
  }

  attach(source: TelemetrySource): () => void {
    return this.meter?.observe(source, this.options.global) ?? (() => undefined);
  }

  /** Created at the first use, because the SDK is registered by then. */
  private get meter(): WorkMeter | undefined {
    if (this.work === undefined) {
      const { meterProvider } = this.options;
      this.work = meterProvider === false ? null : WorkMeter.of(meterProvider);
    }
    return this.work ?? undefined;
  }

  private isChosen(run: TracedRun): boolean {
    const { ratioOf } = this.options;
    return ratioOf === undefined || Math.random() < ratioOf(run);
  }

  private contextOf({ count, awaits }: TracedAdd, active: Context): Context {
    if (awaits) return active.setValue(AWAITED, true);
    return count !== null && this.options.createSpans ? active.setValue(CREATED, { count: 0 }) : active;
  }
}

type Failure = Pick<FailureRecord, 'name' | 'message' | 'stack'>;

class SpanOfRun implements RunTrace {
  constructor(
    private readonly span: Span,
    private readonly active: Context,
  ) {}

  get traceId(): string | undefined {
    const { traceId, traceFlags } = this.span.spanContext();
    return (traceFlags & TraceFlags.SAMPLED) === 0 ? undefined : traceId;
  }

  call<T>(work: () => T): T {
    return context.with(this.active, work);
  }

  ended({ outcome, reason, failure }: TracedEnd): void {
    const { span } = this;
    span.setAttribute('godwit.job.outcome', outcome);
    if (reason !== null) span.setAttribute('godwit.dead.reason', reason);
    if (failure !== null) fail(span, failure.name, failure);
    span.end();
  }
}

/**
 * A run that is not traced, and its context. Spans in its handler are not sampled, here and in the services that it calls. The context
 * gets its span, which is not sampled, when something first reads it. Few handlers do, and creating it would take as long as a short run.
 */
class UntracedRun implements RunTrace, Context {
  private made: Context | undefined;

  constructor(private readonly base: Context) {}

  call<T>(work: () => T): T {
    return context.with(this, work);
  }

  ended(): void {}

  getValue(key: symbol): unknown {
    return (key === SPAN_KEY ? this.whole : this.base).getValue(key);
  }

  setValue(key: symbol, value: unknown): Context {
    return this.whole.setValue(key, value);
  }

  deleteValue(key: symbol): Context {
    return this.whole.deleteValue(key);
  }

  private get whole(): Context {
    if (this.made === undefined) {
      const [traceId, spanId] = [randomBytes(16).toString('hex'), randomBytes(8).toString('hex')];
      const span = trace.wrapSpanContext({ traceId, spanId, traceFlags: TraceFlags.NONE });
      this.made = trace.setSpan(this.base, span);
    }
    return this.made;
  }
}

function fail(span: Span, errorType: string, failure: Failure): void {
  span.setAttribute('error.type', errorType);
  span.setStatus({ code: SpanStatusCode.ERROR, message: failure.message });
  span.recordException(failure);
}

function failureOf(error: unknown): Failure {
  return error instanceof Error ? error : { name: 'NonError', message: show(error) };
}

/** The code of an error of Godwit, otherwise the name of its class. */
function typeOf(error: unknown): string {
  if (error instanceof GodwitError) return error.code;
  return error instanceof Error ? error.name : '_OTHER';
}
