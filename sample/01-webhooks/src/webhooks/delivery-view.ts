import type { JobSnapshot } from 'godwit';
import type { Webhook } from './webhook.js';

/** A delivery as the API shows it. */
export interface DeliveryView {
  readonly id: string;
  readonly state: JobSnapshot['state'];
  readonly url: string;
  readonly event: string;
  readonly body: unknown;
  /** Number of attempts so far, and the maximum. */
  readonly attempt: number;
  readonly attempts: number;
  readonly createdAt: Date | null;
  /** When the next attempt starts. */
  readonly dueAt: Date | null;
  readonly endedAt: Date | null;
  readonly lastError: {
    readonly message: string;
    readonly attempt: number;
    readonly reason: string | null;
  } | null;
  /** The status code of the response, if it was delivered. */
  readonly status: number | null;
}

export function toView(job: JobSnapshot): DeliveryView {
  const { url = '', event = '', body = null } = (job.data ?? {}) as Partial<Webhook>;
  const { failure, result } = job;
  return {
    id: job.id,
    state: job.state,
    url,
    event,
    body,
    attempt: job.attempt,
    attempts: job.attempts,
    createdAt: job.createdAt,
    dueAt: job.dueAt,
    endedAt: job.endedAt,
    lastError: failure && {
      message: failure.message,
      attempt: failure.attempt,
      reason: failure.reason ?? null,
    },
    status: (result as { status: number } | null)?.status ?? null,
  };
}
