import { takeCoverage } from 'node:v8';
import { afterAll, afterEach, beforeEach } from 'vitest';
import { runCleanup } from './cleanup.js';
import { expectNothingLeft, startCounting, type Usage } from './resources.js';

// Every test of every spec proves that it left no timer, socket, thread or process behind.
let before: Usage;

beforeEach(() => {
  before = startCounting();
});

// Runs after the hooks of the spec itself: Vitest takes them in reverse order.
afterEach(async () => {
  await runCleanup();
  await expectNothingLeft(before);
});

// Vitest kills its processes, so under `npm run coverage` they would leave nothing by themselves.
if (process.env['NODE_V8_COVERAGE'] !== undefined) afterAll(() => takeCoverage());
