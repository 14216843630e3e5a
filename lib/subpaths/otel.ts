export { otel } from './otel/otel.js';
export type { OtelOptions, TraceRelation } from './otel/options.js';
