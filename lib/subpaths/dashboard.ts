export { QueueDashboardModule } from './dashboard/dashboard.module.js';
export type { JobLink, LinkedJob } from './dashboard/job-links.js';
export type { QueueDashboardOptions } from './dashboard/options.js';
export type { DashboardRedaction } from './dashboard/redaction.js';
export { DASHBOARD_ACTIONS } from './dashboard/rights.js';
export type {
  DashboardAction,
  DashboardAuthorize,
  DashboardPlace,
  DashboardRole,
  DashboardVerdict,
} from './dashboard/rights.js';
