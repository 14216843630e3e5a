import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

// Toy specs for `run-specs.spec.ts`: one that passes, one that fails the first time, one that always fails, one that never ends.
export default defineConfig({
  root: fileURLToPath(new URL('../../..', import.meta.url)),
  test: { include: ['test/support-specs/reruns/*.toy.ts'], pool: 'forks' },
});
