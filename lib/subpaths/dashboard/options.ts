import type { CanActivate, Type } from '@nestjs/common';
import { InvalidOptionError } from '../../errors.js';
import {
  checkDefinition,
  isDefinition,
  type AnyDefinition,
  type JobDefinition,
} from '../../job/define-job.js';
import { parseDuration, type Duration } from '../../job/duration.js';
import { boolean, duration, field, integer, oneOf, refuse, rule, shape } from '../../options/check.js';
import type { QueueAction } from '../../contract/actions.js';
import { checkJobLinks, type JobLink } from './job-links.js';
import { HIDDEN_FIELDS, type DashboardRedaction } from './redaction.js';
import type { DashboardAuthorize } from './rights.js';

/**
 * `QueueDashboardModule.forRoot(options)`. It needs `guards`, `authorize` or `access: 'public'`; without any of them it refuses
 * to start.
 */
export interface QueueDashboardOptions {
  /** Its path, after the global prefix of the application. @default 'queues' */
  readonly path?: string;
  /**
   * Which queues it shows: those that this application registers, or all of the prefix. Those that are not registered here have the
   * defaults of `forRoot`.
   *
   * @default 'registered'
   */
  readonly queues?: 'registered' | 'all';
  /** Guards of the application, as in `@UseGuards`; every page, file and call of the dashboard passes them. @default none */
  readonly guards?: readonly (Type<CanActivate> | CanActivate)[];
  /** Decides what a person may do, for each queue. @default everything, for everyone who passes the guards */
  readonly authorize?: DashboardAuthorize;
  /**
   * `'public'`: everyone who reaches the application may do everything. Only for a closed network; not together with `guards` or
   * `authorize`.
   *
   * @default none
   */
  readonly access?: 'public';
  /** Turns off everything but reading, on the server. @default false */
  readonly readOnly?: boolean;
  /** Which values never leave the server; `false` hides none. @default fields with names such as password, secret, token */
  readonly redact?: DashboardRedaction | false;
  /** Heading of the pages, up to 60 characters. @default 'Queues' */
  readonly title?: string;
  /** Shown next to the heading, such as `'production'`, up to 30 characters. @default none */
  readonly environment?: string;
  /**
   * Links on the page of a job, by label: for example to its trace, or to the order that it handles. Only http and https addresses become links.
   *
   * @default none
   */
  readonly jobLinks?: Readonly<Record<string, JobLink>>;
  /**
   * Definitions of jobs, made with `defineJob`: the schema of a job checks data that is added or edited on the dashboard, and its name is
   * offered.
   *
   * @default none: data is not checked
   */
  readonly definitions?: readonly JobDefinition<any, any, any, any>[];
  /** A queue whose oldest job has waited longer needs attention. @default '5m' */
  readonly maxOldest?: Duration;
  /** How many people may follow the live events at once, in one process, 1 to 10,000. @default 100 */
  readonly maxStreams?: number;
  /**
   * Called after each action that is recorded, with who did what and the result; also of what was refused, up to 30 a minute and
   * person. @default a line in the log
   */
  readonly onAction?: (action: QueueAction) => void;
}

/** `QueueDashboardOptions` with defaults. */
export interface CheckedDashboardOptions extends Required<
  Pick<
    QueueDashboardOptions,
    | 'path'
    | 'queues'
    | 'guards'
    | 'authorize'
    | 'readOnly'
    | 'redact'
    | 'title'
    | 'environment'
    | 'maxStreams'
  >
> {
  readonly jobLinks: readonly (readonly [label: string, link: JobLink])[];
  readonly definitions: readonly AnyDefinition[];
  readonly maxOldestMs: number;
  readonly onAction: ((action: QueueAction) => void) | undefined;
}

const PATH = 'QueueDashboardModule.forRoot()';

const readRedaction = shape({
  fields: field('fields', rule(checkedBy('a regular expression', (value) => value instanceof RegExp))),
  paths: field('paths', rule(checkedBy('a list of paths such as card.number', isTexts))),
  text: field('text', rule(checkedBy('a function', isFunction))),
});

const readOptions = shape({
  path: field('path', rule(readPath)),
  queues: field('queues', oneOf('registered', 'all')),
  guards: field('guards', rule(checkedBy('a list of guards', isGuards))),
  authorize: field('authorize', rule(checkedBy('a function', isFunction))),
  access: field('access', oneOf('public')),
  readOnly: field('readOnly', boolean),
  redact: field('redact', (value, path, report) =>
    value === false ? false : (readRedaction(value, path, report) as DashboardRedaction | undefined),
  ),
  title: field('title', rule(textUpTo(60))),
  environment: field('environment', rule(textUpTo(30))),
  jobLinks: field('jobLinks', rule(checkJobLinks)),
  definitions: field('definitions', rule(checkDefinitions)),
  maxOldest: field('maxOldestMs', duration()),
  maxStreams: field('maxStreams', integer(1, 10_000)),
  onAction: field('onAction', rule(checkedBy('a function', isFunction))),
});

/** @throws {InvalidOptionError} */
export function checkDashboardOptions(options: unknown): CheckedDashboardOptions {
  const read = readOptions(options, PATH, refuse)!;
  const { guards = [], authorize, access } = read as typeof read & Pick<QueueDashboardOptions, 'guards'>;
  if (guards.length === 0 && authorize === undefined && access === undefined)
    throw new InvalidOptionError(
      PATH,
      'given guards or authorize',
      options,
      `${PATH} needs guards or authorize, or everyone could read and change all jobs; if that is what you want, pass access: 'public'`,
    );
  if (access !== undefined && (guards.length > 0 || authorize !== undefined))
    throw new InvalidOptionError(
      `${PATH}.access`,
      'left out if guards or authorize is given: they decide who may do what',
      access,
    );
  return {
    path: read.path ?? 'queues',
    queues: read.queues ?? 'registered',
    guards,
    authorize: (authorize as DashboardAuthorize | undefined) ?? (() => true),
    readOnly: read.readOnly ?? false,
    redact: read.redact ?? { fields: HIDDEN_FIELDS },
    title: read.title ?? 'Queues',
    environment: read.environment ?? '',
    jobLinks: read.jobLinks ?? [],
    definitions: read.definitions ?? [],
    maxOldestMs: read.maxOldestMs ?? parseDuration('5m', 'maxOldest'),
    maxStreams: read.maxStreams ?? 100,
    onAction: read.onAction as CheckedDashboardOptions['onAction'],
  };
}

function checkedBy(phrase: string, isGood: (value: unknown) => boolean) {
  return (value: unknown, path: string): unknown => {
    if (isGood(value)) return value;
    throw new InvalidOptionError(path, phrase, value);
  };
}

function checkDefinitions(value: unknown, path: string): AnyDefinition[] {
  if (!Array.isArray(value) || !value.every(isDefinition))
    throw new InvalidOptionError(path, 'a list of results of defineJob', value);
  return value.map((one, at) => checkDefinition(one, `${path}[${at}]`));
}

function isFunction(value: unknown): boolean {
  return typeof value === 'function';
}

function isTexts(value: unknown): boolean {
  return Array.isArray(value) && value.every((one) => typeof one === 'string' && one !== '');
}

function isGuards(value: unknown): boolean {
  const isGuard = (one: unknown) =>
    typeof one === 'function' || (typeof one === 'object' && one !== null && 'canActivate' in one);
  return Array.isArray(value) && value.every(isGuard);
}

function readPath(value: unknown, path: string): string {
  const trimmed = typeof value === 'string' ? value.replace(/^\/|\/$/g, '') : '';
  if (/^[A-Za-z0-9_~-][A-Za-z0-9._~-]*(\/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)*$/.test(trimmed)) return trimmed;
  throw new InvalidOptionError(path, "a path such as 'queues' or 'admin/queues'", value);
}

function textUpTo(max: number) {
  return (value: unknown, path: string): string => {
    if (typeof value === 'string' && value.length > 0 && value.length <= max) return value;
    throw new InvalidOptionError(path, `a string of 1 to ${max} characters`, value);
  };
}
