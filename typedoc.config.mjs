// The documentation of everything that package.json exports: `npm run docs`.
import { readFileSync } from 'node:fs';
import { docsPlugin, GROUP_ORDER } from './tools/docs-plugin.mjs';

const { exports } = JSON.parse(readFileSync(new URL('package.json', import.meta.url), 'utf8'));
/** `./dist/subpaths/testing.d.ts` is made from `lib/subpaths/testing.ts`. */
const sources = Object.values(exports)
  .map((entry) => entry.types)
  .filter((path) => path !== undefined)
  .map((path) => path.replace(/^\.\/dist\//, 'lib/').replace(/\.d\.ts$/, '.ts'));

/** @type {Partial<import('typedoc').TypeDocOptions>} */
export default {
  name: 'Godwit',
  plugin: [docsPlugin],
  preservedTypeAnnotationTags: ['@throws'],
  navigation: { includeGroups: true },
  groupOrder: GROUP_ORDER,
  entryPoints: sources,
  tsconfig: 'tsconfig.json',
  out: 'docs/api',
  includeVersion: true,
  excludeInternal: true,
  excludePrivate: true,
  excludeProtected: true,
  excludeExternals: true,
  disableSources: true,
  highlightLanguages: ['typescript', 'javascript', 'json', 'bash', 'mermaid'],
  treatWarningsAsErrors: true,
  // Steps of the types for Queue<Jobs>, and the names that ScheduledJobOptions leaves out.
  intentionallyNotExported: [
    'First',
    'Input',
    'Listed',
    'Named',
    'NOT_OF_SCHEDULES',
    'Result',
    'Returning',
    'TemplateOf',
  ],
  // The words of a union tell its members apart.
  intentionallyNotDocumented: [
    'godwit.EventsStatus.__type.state',
    'godwit.DispatcherStatus.__type.state',
    'godwit.EventOf.__type.type',
    'godwit.HandleDecorator.__type.Method',
    'godwit.HandleBatchDecorator.__type.Method',
    'godwit.OnQueueEventDecorator.__type.Method',
    'godwit.OnJobDecorator.__type.Method',
    'godwit.JobEventOf.__type.type',
  ],
  validation: {
    notExported: true,
    invalidLink: true,
    invalidPath: true,
    rewrittenLink: true,
    notDocumented: true,
    unusedMergeModuleWith: true,
  },
};
