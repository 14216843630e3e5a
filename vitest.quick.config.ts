import { fileURLToPath } from 'node:url';
import { defineConfig, mergeConfig } from 'vitest/config';
import base from './vitest.config.js';

const LIB = fileURLToPath(new URL('lib', import.meta.url));

/** Unit, script and conformance specs on the sources, without a build: `npm run test:quick`. */
export default mergeConfig(
  { ...base, test: { ...base.test, include: [], sequence: {} } },
  defineConfig({
    resolve: { alias: [{ find: /^#lib\/(.*)\.js$/, replacement: `${LIB}/$1.ts` }] },
    test: {
      include: ['test/{unit,scripts,conformance}/**/*.spec.ts'],
      // It reads the build.
      exclude: ['test/unit/terminus-entry.spec.ts'],
    },
  }),
);
