import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from './sources.js';

/** An entry point of the package: `godwit`, `godwit/testing`. */
interface Entry {
  readonly name: string;
  /** Its published types. */
  readonly types: string;
  readonly load: () => Promise<Record<string, unknown>>;
}

interface Manifest {
  readonly name: string;
  readonly exports: Readonly<Record<string, string | { readonly types: string; readonly default: string }>>;
}

const { name, exports } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as Manifest;

/** All entry points, from package.json. */
export const ENTRIES: readonly Entry[] = Object.entries(exports).flatMap(([path, files]) => {
  if (typeof files === 'string') return [];
  return [
    {
      name: join(name, path),
      types: join(ROOT, files.types),
      load: () => import(join(ROOT, files.default)) as Promise<Record<string, unknown>>,
    },
  ];
});
