import { defineConfig } from 'vitest/config';
import { base } from '../../vitest.config.js';

/** The specs that need BullMQ: `npm run test:from-bullmq`. */
export default defineConfig({
  ...base,
  test: { ...base.test, include: ['sample/03-from-bullmq/e2e-bullmq/**/*.e2e-spec.ts'] },
});
