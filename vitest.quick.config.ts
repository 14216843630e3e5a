import { fileURLToPath } from 'node:url';
import { configDefaults, defineConfig } from 'vitest/config';
import { base, QUICK } from './vitest.config.js';

const LIB = fileURLToPath(new URL('lib', import.meta.url));

/** `npm run test:quick`: unit, script and conformance specs on the sources of lib, without a build. */
export default defineConfig({
  ...base,
  resolve: { alias: [{ find: /^#lib\/(.*)\.js$/, replacement: `${LIB}/$1.ts` }] },
  test: {
    ...base.test,
    include: QUICK,
    // Reads the build.
    exclude: [...configDefaults.exclude, 'test/unit/terminus-entry.spec.ts'],
    isolate: false,
    // `npm run test:quick -- --watch` turns it on.
    watch: false,
  },
});
