import { fileURLToPath } from 'node:url';
import { defineConfig, mergeConfig } from 'vitest/config';
import { base } from '../../../vitest.config.js';

// Runs the tests of this folder, most of which must fail, apart from those of the project.
const root = fileURLToPath(new URL('../../..', import.meta.url));
export default mergeConfig(
  base,
  defineConfig({
    root,
    test: { include: ['test/support-specs/leaks/*.leak.ts'] },
  }),
);
