/** Everything that a person may be allowed to do on the dashboard. */
export const DASHBOARD_ACTIONS = [
  'read',
  'read-data',
  'read-actions',
  'job.add',
  'job.retry',
  'job.edit',
  'job.promote',
  'job.cancel',
  'job.remove',
  'bulk',
  'queue.pause',
  'limit.edit',
  'queue.repair',
  'queue.obliterate',
  'schedule.run',
  'schedule.pause',
  'schedule.edit',
  'schedule.remove',
] as const;

/**
 * Something that a person may be allowed to do. `read`: see a queue with its jobs; without it the queue does not exist for them.
 * `read-data`: see data, results, progress and log lines. `read-actions`: see what people did. `bulk`: the act on all jobs that
 * match, together with the right for one job.
 */
export type DashboardAction = (typeof DASHBOARD_ACTIONS)[number];

const VIEWER: readonly DashboardAction[] = ['read', 'read-data'];
const OPERATOR: readonly DashboardAction[] = [
  ...VIEWER,
  'read-actions',
  'job.add',
  'job.retry',
  'job.edit',
  'job.promote',
  'job.cancel',
  'bulk',
  'queue.pause',
  'limit.edit',
  'schedule.run',
  'schedule.pause',
  'schedule.edit',
];

/**
 * Rights by role: a viewer reads; an operator also adds, retries, edits, promotes and cancels jobs, one or many, pauses queues
 * and schedules, sets limits, runs and edits schedules; an admin does everything.
 */
export const ROLES: Readonly<Record<DashboardRole, readonly DashboardAction[]>> = {
  viewer: VIEWER,
  operator: OPERATOR,
  admin: DASHBOARD_ACTIONS,
};

/** The roles that `authorize` may return. */
export type DashboardRole = 'viewer' | 'operator' | 'admin';

/** The target of an action. Without `queue` it is all queues, without `jobId` the whole queue. */
export interface DashboardPlace {
  /** Name of the queue. */
  readonly queue?: string;
  /** Id of the job. */
  readonly jobId?: string;
}

/** The result of `authorize`: whether the action is allowed, or the role of the person. */
export type DashboardVerdict =
  | boolean
  | DashboardRole
  | {
      /** Whether it is allowed, or the role of the person. */
      readonly allow: boolean | DashboardRole;
      /** The name of this person in the record of actions. */
      readonly actor?: string;
    };

/** Decides for each request; `request` is that of Express or Fastify, with what your guards have added to it. */
export type DashboardAuthorize = (
  request: any,
  action: DashboardAction,
  place: DashboardPlace,
) => DashboardVerdict | Promise<DashboardVerdict>;

export interface Decision {
  readonly isAllowed: boolean;
  readonly actor: string | undefined;
}

/** The role of a verdict; null for yes and no. */
export function roleOf(verdict: unknown): DashboardRole | null {
  const { allow } = partsOf(verdict);
  return typeof allow === 'string' && Object.hasOwn(ROLES, allow) ? (allow as DashboardRole) : null;
}

/** Whether a verdict allows this action. Any other value refuses it. */
export function decide(verdict: unknown, action: DashboardAction): Decision {
  const role = roleOf(verdict);
  const { allow, actor } = partsOf(verdict);
  const isAllowed = role === null ? allow === true : ROLES[role].includes(action);
  return { isAllowed, actor: typeof actor === 'string' ? actor : undefined };
}

function partsOf(verdict: unknown): { readonly allow?: unknown; readonly actor?: unknown } {
  return typeof verdict === 'object' && verdict !== null ? verdict : { allow: verdict };
}
