import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/mutation/by-model.ts'],
    pool: 'forks',
    server: { deps: { external: [/\/dist\//] } },
  },
});
