import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** Finds claims in a table of promises that are wrong about their specs. */
interface Proofs {
  readonly rows: readonly string[];
  /** Rows that name no spec, specs that do not exist, and quotes that a spec does not contain. */
  readonly missing: readonly string[];
}

/** Reads the tables of a page whose rows link to specs and quote titles of them: “title”. */
export function readProofs(page: URL): Proofs {
  const text = readFileSync(page, 'utf8');
  const lines = text.split('\n');
  const rows = lines.filter((line, at) => line.startsWith('| ') && !lines[at + 1]?.startsWith('|-'));
  const missing = rows.filter((row) => !/\[`[\w-]+`\]\(/.test(row)).map((row) => `without a proof: ${row}`);
  for (const [, path, quotes] of text.matchAll(/\[`[\w-]+`\]\(([^)]+)\)((?: “[^”]+”)*)/g)) {
    const file = fileURLToPath(new URL(path!, page));
    if (!existsSync(file)) {
      missing.push(`${file} is not there`);
      continue;
    }
    const held = readFileSync(file, 'utf8');
    for (const [, quote] of quotes!.matchAll(/“([^”]+)”/g))
      if (!held.includes(quote!)) missing.push(`${file} does not say “${quote}”`);
  }
  return { rows, missing };
}
