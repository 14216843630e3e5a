// Links every script and writes the texts to lib/engine/scripts/generated.ts, which the engine imports:
//   node --import ./tools/typescript.mjs tools/lua/generate.ts [--check]
// Mistakes that the linter finds are an error: undefined, unused and hidden names. With --check it writes nothing, and fails if
// the file is out of date.
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { isLetteredJobs } from '../../lib/engine/keys.js';
import type { Linked, LinkedLine } from './link.js';

const SCRIPTS = new URL('../../lib/engine/scripts/', import.meta.url);
const OUT = new URL('generated.ts', SCRIPTS);

/** Every group of adjacent lines of a file that the script contains, as `file.line.count`. */
function sourcesOf(lines: readonly LinkedLine[], files: string[]): string {
  const pieces: [file: number, line: number, count: number][] = [];
  for (const { file, line } of lines) {
    if (!files.includes(file)) files.push(file);
    const at = files.indexOf(file);
    const last = pieces.at(-1);
    if (last && last[0] === at && (at === 0 ? line === 0 : line === last[1] + last[2])) last[2] += 1;
    else pieces.push([at, line, 1]);
  }
  return pieces.map((piece) => piece.join('.')).join(' ');
}

export function generated(linked: readonly Linked[]): string {
  const files = [''];
  const rows = linked
    .toSorted((a, b) => (a.name < b.name ? -1 : 1))
    .map(({ name, lines }) => {
      const text = `${lines.map((line) => line.text).join('\n')}\n`;
      const sha = createHash('sha1').update(text).digest('hex');
      return `  ${JSON.stringify(name)}: { sha: '${sha}', sources: '${sourcesOf(lines, files)}', text: ${JSON.stringify(text)} },\n`;
    });
  const keys = linked.map(
    ({ name, keys: its }) =>
      `  ${JSON.stringify(name)}: [${its
        .map((key) => (isLetteredJobs(key) ? '...LETTERED_JOBS' : `'${key}'`))
        .filter((key, i, all) => key !== all[i - 1])
        .join(', ')}],\n`,
  );
  return `// Written by tools/lua/generate.ts.
import { LETTERED_JOBS } from '../keys.js';\n
/** The keys that each script gets, in this order. */
export const KEYS = {
${keys.join('')}} as const;\n
export const FILES: readonly string[] = ${JSON.stringify(files)};\n
export const TEXTS: Readonly<Record<string, { readonly sha: string; readonly sources: string; readonly text: string }>> = {
${rows.join('')}};\n`;
}

async function main(): Promise<void> {
  // The descriptors take their texts from it.
  if (!existsSync(OUT)) writeFileSync(OUT, generated([]));
  for (const name of readdirSync(SCRIPTS))
    if (name.endsWith('.ts') && name !== 'generated.ts') await import(new URL(name, SCRIPTS).href);
  const { linkAll, readLibrary } = await import('./library.js');
  const { faultsIn } = await import('./link.js');
  const library = readLibrary();
  const faults = faultsIn(library);
  const linked = linkAll(library, (fault) => faults.push(fault));
  const used = new Set(linked.flatMap(({ functions }) => functions));
  for (const { functions } of library.values())
    for (const each of functions)
      if (!used.has(each)) faults.push(`${each.file.name}.lua:${each.first}: no script calls ${each.name}`);
  if (faults.length > 0) {
    console.error(faults.join('\n'));
    process.exitCode = 1;
    return;
  }
  const text = generated(linked);
  if (readFileSync(OUT, 'utf8') === text) return;
  if (process.argv.includes('--check')) {
    console.error('lib/engine/scripts/generated.ts is out of date: npm run scripts');
    process.exitCode = 1;
  } else {
    writeFileSync(OUT, text);
  }
}

await main();
