import { defineConfig, mergeConfig } from 'vitest/config';
import shared from '../../vitest.config.js';

/** The specs that need BullMQ: `npm run test:from-bullmq`. */
const config = mergeConfig(shared, defineConfig({}));
config.test!.include = ['sample/03-from-bullmq/e2e-bullmq/**/*.e2e-spec.ts'];

export default config;
