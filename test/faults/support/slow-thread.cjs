// Loaded by `node --require`: every worker thread of the process starts five seconds late.
const { isMainThread } = require('node:worker_threads');

if (!isMainThread) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5_000);
