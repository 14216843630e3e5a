import type { StoredJob } from '../../contract/admin-verbs.js';
import { Log } from '../../contract/log.js';
import { InvalidOptionError } from '../../errors.js';
import { fieldsOf, hasFields } from '../../job/fields.js';
import { decodeBody } from '../../job/job-record.js';
import type { JobState } from '../../job/job-state.js';

/** The values that a link of a job can contain. */
export interface LinkedJob {
  /** Name of the queue. */
  readonly queue: string;
  /** Its id. */
  readonly id: string;
  /** Its name. */
  readonly name: string;
  /** Its state. */
  readonly state: JobState;
  /** The trace that added it, from its header `traceparent`; null without one. */
  readonly traceId: string | null;
  /** Its data; undefined if the person may not see data, or if it is encoded. */
  readonly data: unknown;
}

/**
 * A link on the page of a job: an address with `{queue}`, `{id}`, `{name}`, `{state}` or `{traceId}`, or a function that returns the
 * address, or null for no link.
 */
export type JobLink = string | ((job: LinkedJob) => string | null | undefined);

/** A link as the page shows it. */
export interface JobLinkView {
  readonly label: string;
  readonly url: string;
}

const MAX_LINKS = 10;
const MAX_LABEL = 30;
const FIELDS = ['queue', 'id', 'name', 'state', 'traceId'] as const;
const EXPECTED = `up to ${MAX_LINKS} labels of up to ${MAX_LABEL} characters, each with an http or https address that contains only {${FIELDS.join('}, {')}}, or with a function`;

/** @throws {InvalidOptionError} */
export function checkJobLinks(value: unknown, path: string): [label: string, link: JobLink][] {
  const links = hasFields(value) ? fieldsOf(value, []) : null;
  const isGood = ([label, link]: readonly [string, unknown]) =>
    label.length > 0 && label.length <= MAX_LABEL && (typeof link === 'function' || isTemplate(link));
  if (links === null || links.length > MAX_LINKS || !links.every(isGood))
    throw new InvalidOptionError(path, EXPECTED, value);
  return links as [string, JobLink][];
}

function isTemplate(link: unknown): boolean {
  if (typeof link !== 'string') return false;
  const filled = fill(link, () => 'x');
  // A host or scheme that comes from a job could lead anywhere.
  return !/[{}]/.test(filled ?? '{') && !/^[^/]*\/\/[^/?#]*\{/.test(link) && isWebAddress(filled);
}

function isWebAddress(url: string | null | undefined): url is string {
  return typeof url === 'string' && /^https?:\/\//i.test(url) && URL.canParse(url);
}

/** Null if a field has no value. */
function fill(template: string, valueOf: (field: (typeof FIELDS)[number]) => string | null): string | null {
  let isComplete = true;
  const filled = template.replaceAll(/\{(\w+)\}/g, (same, name: string) => {
    const field = FIELDS.find((one) => one === name);
    const value = field === undefined ? same : valueOf(field);
    isComplete &&= value !== null && value !== '';
    return field === undefined ? same : encodeURIComponent(value ?? '');
  });
  return isComplete ? filled : null;
}

/** Makes the links of a job. A function that throws, or returns anything but an http or https address, makes none. */
export class JobLinks {
  private readonly logger = new Log('QueueDashboard');

  constructor(private readonly links: readonly (readonly [label: string, link: JobLink])[]) {}

  of(queue: string, { id, state, body }: StoredJob, canSeeData: boolean): JobLinkView[] {
    if (this.links.length === 0) return [];
    const record = decodeBody(body);
    const [, traceId = null] = /^\w\w-(\w{32})-/.exec(record?.options.headers?.['traceparent'] ?? '') ?? [];
    const data = canSeeData && record?.codec === undefined ? record?.data : undefined;
    const job: LinkedJob = { queue, id, name: record?.name ?? '', state, traceId, data };
    return this.links.flatMap(([label, link]) => {
      let url: string | null | undefined;
      if (typeof link === 'string') url = fill(link, (field) => job[field]);
      else this.logger.guard(`jobLinks['${label}']`, () => void (url = link(job)));
      return isWebAddress(url) ? [{ label, url: new URL(url).href }] : [];
    });
  }
}
