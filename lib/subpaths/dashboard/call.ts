import { idText } from '../../contract/actions.js';
import type { QueueEngine } from '../../contract/engine.js';
import type { QueueEvents } from '../../events/queue-events.js';
import type { QueueInspector } from '../../inspect/queue-inspector.js';
import { checkJobId, checkQueueName } from '../../job/job-id.js';
import type { AnyDefinition } from '../../job/define-job.js';
import type { Queue } from '../../producer/queue.js';
import { messageOf } from '../../errors/thrown.js';
import { noQueue } from './http.js';
import type { JobLinks } from './job-links.js';
import type { SlowReader } from './overview.js';
import type { Redactor } from './redaction.js';
import type { DashboardAction, DashboardPlace } from './rights.js';
import type { KnownQueue, Unreadable } from './views.js';

/** The parts of the application that the API reads and changes. */
export interface ApiParts {
  readonly engine: QueueEngine;
  readonly queues: () => Promise<readonly string[]>;
  /** Whether queues of this name are shown, even one that is deleted. */
  readonly shows: (name: string) => boolean;
  readonly handleOf: (name: string) => Queue;
  readonly optionsOf: (name: string) => KnownQueue;
  readonly inspector: QueueInspector;
  readonly events: QueueEvents;
  readonly warnings: () => readonly { readonly code: string; readonly message: string }[];
  readonly redactor: Redactor;
  readonly links: Pick<JobLinks, 'of'>;
  readonly definitions: readonly AnyDefinition[];
  readonly maxOldestMs: number;
  readonly slow: SlowReader;
}

/** A request whose path was matched. */
export interface ApiCall {
  readonly params: Readonly<Record<string, string>>;
  readonly query: Readonly<Record<string, string>>;
  readonly body: Readonly<Record<string, unknown>>;
  /** @throws {HttpFault} 403; 404 for a queue that this person may not see. */
  readonly require: (action: DashboardAction, place?: DashboardPlace) => Promise<void>;
  readonly rightsOf: (place: DashboardPlace) => Promise<readonly DashboardAction[]>;
  /** Whether this person may see a queue; without one: what belongs to no queue, such as the server. */
  readonly canSee: (queue?: string) => Promise<boolean>;
  /** Checks the rights, does it, and records who did it and how it ended; also if a right is missing. */
  readonly perform: <T>(act: Act, run: (actor: string) => Promise<T>) => Promise<T>;
}

/** Something that changes a queue. */
export interface Act {
  readonly needs: readonly (readonly [right: DashboardAction, place: DashboardPlace])[];
  /** How it is recorded. */
  readonly action: string;
  readonly queue: string;
  readonly target: string;
}

/** Answers a call of the API. */
export type Route = (call: ApiCall, parts: ApiParts) => Promise<unknown>;

/** A queue that exists and that this person may see. */
export async function queueOf(call: ApiCall, { queues, handleOf }: ApiParts): Promise<Queue> {
  const name = checkQueueName(call.params['queue']!);
  const isKnown = (await queues()).includes(name);
  if (isKnown) await call.require('read', { queue: name });
  if (!isKnown) throw noQueue(name);
  return handleOf(name);
}

/** Names of the queues that this person may see. */
export async function visible(call: ApiCall, { queues }: ApiParts): Promise<string[]> {
  return visibleOf(call, await queues());
}

export async function visibleOf(call: ApiCall, names: readonly string[]): Promise<string[]> {
  const seen = await Promise.all(names.map((queue) => call.canSee(queue)));
  // A person who may not see any queue may not see the server either.
  if (!seen.includes(true)) await call.require('read');
  return names.filter((_, at) => seen[at]);
}

/** The messages of these errors, by queue. */
export function unreadableOf(faults: ReadonlyMap<string, Error>): Unreadable {
  return Object.fromEntries(Array.from(faults, ([queue, error]) => [queue, messageOf(error)]));
}

/** An act on one job, with the right it needs. */
export function onJob(
  action: DashboardAction,
  act: (queue: Queue, id: string, call: ApiCall, parts: ApiParts) => Promise<unknown>,
): Route {
  return async (call, parts) => {
    const queue = await queueOf(call, parts);
    const jobId = checkJobId(call.params['id']!);
    const needs = [[action, { queue: queue.name, jobId }]] as const;
    const what = { needs, action, queue: queue.name, target: idText(jobId) };
    return call.perform(what, async () => (await act(queue, jobId, call, parts)) ?? { done: 1 });
  };
}

/** An act on a queue or on something in it, with the right it needs. */
export function onQueue(
  right: DashboardAction,
  act: (queue: Queue, call: ApiCall, parts: ApiParts) => Promise<unknown>,
  action: string = right,
): Route {
  return async (call, parts) => {
    const queue = await queueOf(call, parts);
    const needs = [[right, { queue: queue.name }]] as const;
    const what = { needs, action, queue: queue.name, target: idText(call.params['id'] ?? '') };
    return call.perform(what, async () => (await act(queue, call, parts)) ?? { done: 1 });
  };
}
