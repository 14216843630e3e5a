export { QueueHealthIndicator } from './terminus/queue-health.indicator.js';
export type { QueueHealth } from './terminus/queue-health.indicator.js';
export type { QueueHealthLimits, QueueHealthOptions } from './terminus/queue-health.indicator.js';
