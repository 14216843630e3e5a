// The documentation of everything that package.json exports: `npm run docs`.
import { readFileSync } from 'node:fs';

const { exports } = JSON.parse(readFileSync(new URL('package.json', import.meta.url), 'utf8'));
/** `./dist/testing.d.ts` is made from `lib/testing.ts`. */
const sources = Object.values(exports)
  .map((entry) => entry.types)
  .filter((path) => path !== undefined)
  .map((path) => path.replace(/^\.\/dist\//, 'lib/').replace(/\.d\.ts$/, '.ts'));

/** @type {Partial<import('typedoc').TypeDocOptions>} */
export default {
  name: 'Godwit',
  entryPoints: sources,
  tsconfig: 'tsconfig.json',
  out: 'docs/api',
  includeVersion: true,
  excludeInternal: true,
  excludePrivate: true,
  excludeProtected: true,
  excludeExternals: true,
  disableSources: true,
  treatWarningsAsErrors: true,
  validation: {
    notExported: true,
    invalidLink: true,
    invalidPath: true,
    rewrittenLink: true,
    notDocumented: true,
    unusedMergeModuleWith: true,
  },
};
