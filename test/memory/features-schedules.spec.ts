import { describe } from 'vitest';

// As `features.spec.ts` does, beside it: occurrences of a second each take their time.
process.env['GODWIT_ENGINE'] = 'memory';

describe('in memory', () => {
  describe('schedules', async () => void (await import('../features/schedules.spec.js')));
  describe('the handle of schedules', async () => void (await import('../features/schedule-handle.spec.js')));
});
