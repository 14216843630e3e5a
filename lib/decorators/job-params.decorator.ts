import type { PipeTransform, Type } from '@nestjs/common';
import type { StandardSchemaV1 } from '@standard-schema/spec';
import { BootstrapError } from '../errors.js';
import { show } from '../errors/show.js';
import { JOB_PARAMS, markParam, type ParamMark } from './metadata.js';

/** A pipe, or the class of one. */
export type JobDataPipe = PipeTransform | Type<PipeTransform>;

/** Options of `@JobData`. */
export interface JobDataOptions {
  /**
   * Passed to the pipes; `StandardSchemaValidationPipe` of Nest 12 validates with it. Without such a pipe it does nothing. To
   * validate every job of a kind, use `defineJob`.
   *
   * @default none
   */
  readonly schema?: StandardSchemaV1;
  /** Pipes that the data goes through, in this order. @default none */
  readonly pipes?: readonly JobDataPipe[];
}

/**
 * Passes the data of the job to a parameter of a handler. Pipes treat it like a request body: `ValidationPipe` validates it with
 * the class of the parameter. Throws a `BootstrapError` when the class is defined, if it is given anything but a property, pipes
 * or options.
 *
 * @example
 * ;@Handle('welcome')@UsePipes(new ValidationPipe({ transform: true }))
 * async welcome(@JobData() data: WelcomeDto,@Signal() signal: AbortSignal) {}
 */
export function JobData(...pipes: (JobDataPipe | JobDataOptions)[]): ParameterDecorator;
/**
 * Passes one property of the data; undefined if the data does not have it.
 *
 * @example
 * ;@Handle('resize')
 * async resize(@JobData('width', ParseIntPipe) width: number) {}
 */
export function JobData(property: string, ...pipes: (JobDataPipe | JobDataOptions)[]): ParameterDecorator;
export function JobData(...given: unknown[]): ParameterDecorator {
  const property = typeof given[0] === 'string' ? given[0] : undefined;
  const rest = property === undefined ? given : given.slice(1);
  const wrong = rest.filter((one) => !isPipe(one) && !isOptions(one));
  const options = rest.filter(isOptions);
  const what = {
    data: property,
    pipes: rest.flatMap<unknown>((one) => (isOptions(one) ? (one.pipes ?? []) : [one])),
    schema: options.find(({ schema }) => schema !== undefined)?.schema,
  };
  return parameter(JOB_PARAMS.data, '@JobData()', what, wrong);
}

/**
 * Passes the job itself to a parameter of a handler. The first parameter without a decorator is the job too.
 *
 * @example
 * async welcome(@JobData() data: WelcomeDto,@JobRef() job: Job) { await job.progress(50); }
 */
export function JobRef(): ParameterDecorator {
  return parameter(JOB_PARAMS.job, '@JobRef()');
}

/**
 * Passes the id of the job to a parameter of a handler.
 *
 * @example
 * async charge(@JobData() data: Charge,@JobId() id: string) { await this.bank.charge(data, { idempotencyKey: id }); }
 */
export function JobId(): ParameterDecorator {
  return parameter(JOB_PARAMS.id, '@JobId()');
}

/**
 * Passes the number of this attempt, from 1, to a parameter of a handler.
 *
 * @example
 * async fetch(@JobData() data: Page,@Attempt() attempt: number) { return this.mirrors[attempt - 1]!.get(data.url); }
 */
export function Attempt(): ParameterDecorator {
  return parameter(JOB_PARAMS.attempt, '@Attempt()');
}

/**
 * Passes the signal of the job to a parameter of a handler. It aborts if the run should end early, with a `JobAbortedError` as its
 * reason.
 *
 * @example
 * async send(@JobData('to') to: string,@Signal() signal: AbortSignal) { await this.mailer.send(to, { signal }); }
 */
export function Signal(): ParameterDecorator {
  return parameter(JOB_PARAMS.signal, '@Signal()');
}

function parameter(
  type: number,
  decorator: string,
  what: ParamMark = {},
  wrong: readonly unknown[] = [],
): ParameterDecorator {
  return (target, key, index) => {
    const isStatic = typeof target === 'function';
    const className = isStatic ? target.name : target.constructor.name;
    const place = `${className}${key === undefined ? '' : `.${String(key)}`}`;
    if (key === undefined || isStatic) {
      const where = key === undefined ? 'the constructor of ' : 'the static ';
      throw new BootstrapError([
        `${decorator} is on a parameter of ${where}${place}; put it on a parameter of a method with @Handle`,
      ]);
    }
    if (wrong.length > 0) {
      throw new BootstrapError([
        `${decorator} on ${place} takes the name of a property, pipes, or { schema, pipes }, got ${show(wrong[0])}`,
      ]);
    }
    markParam(target.constructor, key, type, index, what);
  };
}

function isPipe(value: unknown): boolean {
  const transform = (one: unknown) => typeof (one as Partial<PipeTransform> | null)?.transform === 'function';
  return typeof value === 'function' ? transform(value.prototype) || transform(value) : transform(value);
}

function isOptions(value: unknown): value is JobDataOptions {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  const { pipes } = value as { pipes?: unknown };
  const known = Object.keys(value).every((key) => key === 'schema' || key === 'pipes');
  return known && (pipes === undefined || (Array.isArray(pipes) && pipes.every(isPipe)));
}
