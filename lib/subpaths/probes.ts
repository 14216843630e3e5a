export { QueueProbes, QueueProbesModule } from './probes/queue-probes.module.js';
export type { QueueProbesOptions } from './probes/queue-probes.module.js';
