import { configDefaults, defineConfig, type ViteUserConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** Specs that take a minute or two. `narrow-line` and `accessible-pages` start later: next to these they would miss their time limits. */
const LONG =
  /\/test\/(chaos|failover|model|memory|soak)\/|dashboard-pages\.spec|\/(releases|time-and-shape|worker-death|counters|dispatch|embedded-process|forged|lost-reply|queues|side-by-side|stopping)\.spec/;

/** Without times of an earlier run Vitest takes large files first; a small one that takes a minute would then end long after all others. */
class LongFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    // oxlint-disable-next-line no-array-sort -- it is not that of an array
    const sorted = await super.sort(files);
    const isLong = ({ moduleId }: TestSpecification) => LONG.test(moduleId);
    return [...sorted.filter(isLong), ...sorted.filter((file) => !isLong(file))];
  }
}

/** Specs that start no process and no application: files that share a process load Nest and lib once, which takes half of their time. */
export const QUICK = ['test/{unit,scripts,conformance}/**/*.spec.ts'];

/**
 * Specs that change nothing of their process. Sharing one takes a quarter off their time, as Nest and lib are loaded once for many
 * files. `embedded`, `testing/app` and `support-specs/app` look at their process as a whole, `otel` registers an SDK for all of it, `memory/features`
 * sets the engine for all of it, and sample 05 reads its settings from it.
 */
const SHARED = [
  'test/*.spec.ts',
  'test/{unit,scripts,conformance,history,bench,connections,fuzz,docs}/**/*.spec.ts',
  'test/{testing,support-specs}/!(app).spec.ts',
  'test/counters/!(counters).spec.ts',
  'test/memory/!(features*).spec.ts',
  'test/features/!(embedded*|otel*).spec.ts',
  'test/{faults,cli}/**/*.spec.ts',
  'sample/0[1-4]-*/e2e/**/*.e2e-spec.ts',
];

/**
 * Specs that take long: processes that are killed or idle, servers that fail over or are silent, slow networks, random sequences,
 * planted faults, benches, pages in a browser, the tools of these tests. `npm run test:proofs` runs them, and so does CI.
 */
const PROOFS = [
  'test/{chaos,failover,model,soak,trials}/**/*.spec.ts',
  'test/faults/{clocks,dashboard,half-open,idle,killed-groups,large-values,narrow-line,planted,registry,releases,replicated,slow-line,worker-death}.spec.ts',
  'test/connections/{cluster-node-down,cluster-registry-down,cluster-silent,replicated,sentinel}.spec.ts',
  'test/versions/**/*.spec.ts',
  'test/cli/dispatch.spec.ts',
  'test/features/embedded-process.spec.ts',
  'test/bench/{flow-control,network,time-and-shape}.spec.ts',
  'test/memory/features-schedules.spec.ts',
  'test/features/*-pages.spec.ts',
  'test/support-specs/{leaks,npm-run-sample,redis-tool,run-specs}.spec.ts',
  'sample/*/e2e/page.e2e-spec.ts',
];

/** For every run of specs in this repository. */
export const base = {
  // Nest reads the types of constructor parameters, so the specs need the decorator metadata that tsc writes.
  oxc: { decorator: { legacy: true, emitDecoratorMetadata: true } },
  test: {
    globalSetup: ['test/support/global-setup.ts'],
    setupFiles: ['test/support/setup.ts'],
    // One process per file, so that a spec cannot disturb the next; those of `shared` share some.
    pool: 'forks',
    // Most specs wait for something, so four at a time keep two cores busy.
    maxWorkers: 4,
    sequence: { sequencer: LongFirst },
    testTimeout: 60_000,
    hookTimeout: 60_000,
    // dist is loaded by Node itself and not transformed: what is tested is what is published.
    server: { deps: { external: [/\/dist\//] } },
  },
} satisfies ViteUserConfig;

export default defineConfig({
  ...base,
  test: {
    ...base.test,
    projects: [
      {
        extends: true,
        test: {
          name: 'shared',
          include: SHARED,
          exclude: [...configDefaults.exclude, ...PROOFS],
          isolate: false,
        },
      },
      { extends: true, test: { name: 'proofs', include: PROOFS } },
      {
        extends: true,
        test: {
          name: 'rest',
          include: ['test/**/*.spec.ts', 'sample/*/e2e/**/*.e2e-spec.ts'],
          exclude: [...configDefaults.exclude, ...SHARED, ...PROOFS],
        },
      },
    ],
  },
});
