import { defineConfig } from 'vitest/config';

/** MUTATION_BY says which half of the work is done: `model` or `specs`. */
const by = process.env['MUTATION_BY'] ?? 'model';

export default defineConfig({
  test: {
    include: [`test/mutation/by-${by}.ts`],
    globalSetup: by === 'specs' ? ['test/support/global-setup.ts'] : [],
    setupFiles: by === 'specs' ? ['test/support/setup.ts'] : [],
    pool: 'forks',
    // On a busy machine a long spec takes 10 s. A mutant would then count as killed.
    testTimeout: 30_000,
    server: { deps: { external: [/\/dist\//] } },
  },
});
