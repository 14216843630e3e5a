import { takeCoverage } from 'node:v8';
import { afterAll, afterEach, beforeEach } from 'vitest';
import { runCleanup } from './cleanup.js';
import { expectNothingLeft, startCounting, type Usage } from './resources.js';

// After every test, check that it left no timer, socket, thread or process behind.
let before: Usage;

beforeEach(() => {
  before = startCounting();
});

// Runs after the hooks of the spec, because Vitest runs them in reverse order.
afterEach(async () => {
  await runCleanup();
  await expectNothingLeft(before);
});

// Vitest kills its processes, so `npm run coverage` would lose their coverage otherwise.
if (process.env['NODE_V8_COVERAGE'] !== undefined) afterAll(() => takeCoverage());
