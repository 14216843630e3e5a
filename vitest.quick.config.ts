import { fileURLToPath } from 'node:url';
import { defineConfig, mergeConfig } from 'vitest/config';
import base from './vitest.config.js';

const LIB = fileURLToPath(new URL('lib', import.meta.url));

/** `npm run test:quick`: unit, script and conformance specs on the sources of lib, without a build. */
export default mergeConfig(
  { ...base, test: { ...base.test, include: [], sequence: {} } },
  defineConfig({
    resolve: { alias: [{ find: /^#lib\/(.*)\.js$/, replacement: `${LIB}/$1.ts` }] },
    test: {
      include: ['test/{unit,scripts,conformance}/**/*.spec.ts'],
      // Reads the build.
      exclude: ['test/unit/terminus-entry.spec.ts'],
      // `npm run test:quick -- --watch` turns it on.
      watch: false,
      // Files that share a process load Nest and lib once, which takes half of the time.
      isolate: false,
    },
  }),
);
