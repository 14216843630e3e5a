import type { MeterProvider, TracerProvider } from '@opentelemetry/api';
import { Log } from '../../contract/log.js';
import { InvalidOptionError } from '../../errors.js';
import { messageOf } from '../../errors/thrown.js';
import { boolean, field, oneOf, orFunction, refuse, rule, shape } from '../../options/check.js';
import type { TracedRun } from '../../options/telemetry.js';

/**
 * How the span of a run relates to the span that added the job. `'link'`: the run begins a new trace, with a link to that span.
 * `'parent'`: the run is in the same trace, as a child of that span.
 */
export type TraceRelation = 'link' | 'parent';

/** Options of `otel()`. */
export interface OtelOptions {
  /**
   * How runs relate to the call that added the job. A function decides for each run. Runs of jobs that `addAndWait` added are
   * always children, because the caller waits for them. Processes that add jobs and processes that run them need the same value.
   * @default 'link'
   */
  readonly relation?: TraceRelation | ((run: TracedRun) => TraceRelation);
  /**
   * Share of the runs that have a span, from 0 to 1; a function decides for each run. Spans in the handlers of other runs are not
   * sampled. The sampler of the SDK then decides about the chosen runs. It needs a span to decide, which costs several times as
   * much. Runs that are children of the call that added the job always have a span.
   * @default 1
   */
  readonly ratio?: number | ((run: TracedRun) => number);
  /**
   * Adds a span `create` for each of the first 100 jobs of `addBulk`, so that each run links to the span of its job.
   *
   * @default false
   */
  readonly createSpans?: boolean;
  /**
   * Reports gauges of all queues of the prefix, read from Redis when metrics are collected: jobs by state, age of the oldest
   * waiting job. Every process would report the same, so turn this on in one process only.
   *
   * @default false
   */
  readonly global?: boolean;
  /** Creates the spans. @default the global one */
  readonly tracerProvider?: TracerProvider;
  /** Creates the metrics; false for no metrics. @default the global one */
  readonly meterProvider?: MeterProvider | false;
}

/** `OtelOptions` after checking. */
export interface CheckedOtel {
  readonly relationOf: (run: TracedRun) => TraceRelation;
  /** Whether every run is linked. Then the context of a span that is not sampled need not be stored. */
  readonly onlyLinks: boolean;
  /** Undefined if all runs have a span. */
  readonly ratioOf: ((run: TracedRun) => number) | undefined;
  readonly createSpans: boolean;
  readonly global: boolean;
  readonly tracerProvider: TracerProvider | undefined;
  readonly meterProvider: MeterProvider | false | undefined;
}

const PLACE = 'otel()';
const logger = new Log('QueueTelemetry');

const readShare = rule((value: unknown, path: string): number => {
  if (typeof value === 'number' && value >= 0 && value <= 1) return value;
  throw new InvalidOptionError(path, 'a number from 0 to 1, or a function that returns one', value);
});

const having = <T>(method: string, phrase: string) =>
  rule((value: unknown, path: string): T => {
    if (typeof (value as Record<string, unknown> | null)?.[method] === 'function') return value as T;
    throw new InvalidOptionError(path, phrase, value);
  });
const readMeterProvider = having<MeterProvider>('getMeter', 'a MeterProvider of OpenTelemetry, or false');

const readOptions = shape({
  relation: field(
    'relation',
    orFunction<TraceRelation, (run: TracedRun) => TraceRelation>(oneOf('link', 'parent')),
  ),
  ratio: field('ratio', orFunction<number, (run: TracedRun) => number>(readShare)),
  createSpans: field('createSpans', boolean),
  global: field('global', boolean),
  tracerProvider: field(
    'tracerProvider',
    having<TracerProvider>('getTracer', 'a TracerProvider of OpenTelemetry'),
  ),
  meterProvider: field<'meterProvider', MeterProvider | false>('meterProvider', (value, path, report) =>
    value === false ? false : readMeterProvider(value, path, report),
  ),
});

/** @throws {InvalidOptionError} */
export function checkOtel(options: OtelOptions): CheckedOtel {
  const given = readOptions(options, PLACE, refuse)!;
  const { relation = 'link', ratio = 1, createSpans = false, global = false } = given;
  const { tracerProvider, meterProvider } = given;
  return {
    relationOf: typeof relation === 'function' ? guarded('relation', relation, 'link') : () => relation,
    onlyLinks: relation === 'link',
    ratioOf: typeof ratio === 'function' ? guarded('ratio', ratio, 1) : ratio < 1 ? () => ratio : undefined,
    createSpans,
    global,
    tracerProvider,
    meterProvider,
  };
}

/** An error of the function of a user must not stop a worker. The first one is logged. */
function guarded<T extends string | number>(
  name: string,
  decide: (run: TracedRun) => T,
  otherwise: T,
): (run: TracedRun) => T {
  let isLogged = false;
  return (run) => {
    try {
      return decide(run);
    } catch (error) {
      if (!isLogged) logger.warn(`${PLACE}.${name} threw, so ${otherwise} applies: ${messageOf(error)}`);
      isLogged = true;
      return otherwise;
    }
  };
}
