export { QueueMetrics } from './prometheus/queue-metrics.js';
export type { MetricRegistry } from './prometheus/queue-metrics.js';
export { QueueMetricsModule } from './prometheus/queue-metrics.module.js';
export type { QueueMetricsOptions } from './prometheus/queue-metrics.module.js';
