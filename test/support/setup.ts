import { afterEach, beforeEach } from 'vitest';
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
