import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** What a table of promises says of its proofs, and which of that is not so. */
export interface Proofs {
  readonly rows: readonly string[];
  /** Rows that name no proof, files that are not there, and words that they do not hold. */
  readonly missing: readonly string[];
}

/** Reads the tables of a page whose rows name specs by link, and quote words of them: “words”. */
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
