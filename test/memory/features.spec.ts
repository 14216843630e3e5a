import { describe } from 'vitest';

// The specs of what users can do, once more: on applications that have the engine in memory, and share one store in each test.
process.env['GODWIT_ENGINE'] = 'memory';

describe('in memory', () => {
  describe('retries', async () => void (await import('../features/retries.spec.js')));
  describe('delay and priority', async () => void (await import('../features/delay-priority.spec.js')));
  describe('cancelling', async () => void (await import('../features/cancel.spec.js')));
  describe('dead letters', async () => void (await import('../features/dead-letters.spec.js')));
  describe('events', async () => void (await import('../features/events-live.spec.js')));
  describe('results', async () => void (await import('../features/results-wait.spec.js')));
  describe('progress and log', async () => void (await import('../features/progress-log.spec.js')));
  describe('concurrency', async () => void (await import('../features/concurrency.spec.js')));
  describe('several queues', async () => void (await import('../features/several-queues.spec.js')));
  describe('results that are kept', async () => void (await import('../features/retention.spec.js')));
  describe('the handle of a queue', async () => void (await import('../features/queue-handle.spec.js')));
  describe('pausing', async () => void (await import('../features/pausing.spec.js')));
  describe('cleaning', async () => void (await import('../features/cleaning.spec.js')));
  describe('semantics of peers', async () => void (await import('../features/peer-semantics.spec.js')));
  describe('what holds jobs back', async () => void (await import('../features/peer-steering.spec.js')));
  describe('headers', async () => void (await import('../features/headers.spec.js')));
  describe('handlers', async () => void (await import('../features/handlers.spec.js')));
});
