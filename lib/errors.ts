/**
 * All errors of the package. Each class has a stable `code` and a message that names the place and the value and says what to do.
 * A test keeps the table in docs/reference/errors.md complete.
 */
export * from './errors/base.js';
// Wrong calls and wrong configuration.
export * from './errors/options.js';
export * from './errors/setup.js';
export * from './errors/acts.js';
// Redis, or the connection to it, fails.
export * from './errors/store.js';
// Errors of a running job.
export * from './errors/run.js';
