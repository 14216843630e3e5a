import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';

const README = new URL('README.md', import.meta.url);
const text = readFileSync(README, 'utf8');

/** Every spec that the table names, with the words it quotes from it. */
function proofs(): { path: string; quotes: string[] }[] {
  return [...text.matchAll(/\[`[\w-]+`\]\(([^)]+)\)((?: “[^”]+”)*)/g)].map(([, path, quotes]) => ({
    path: fileURLToPath(new URL(path!, README)),
    quotes: [...quotes!.matchAll(/“([^”]+)”/g)].map(([, quote]) => quote!),
  }));
}

it('every row of the table names what proves it, and that exists and says so', () => {
  const rows = text.split('\n').filter((line) => /^\| (?!Fault|-)/.test(line));
  expect(rows.length).toBeGreaterThan(40);
  expect(rows.filter((row) => !/\[`[\w-]+`\]\(/.test(row))).toEqual([]);
  const missing = proofs().flatMap(({ path, quotes }) => {
    if (!existsSync(path)) return [`${path} is not there`];
    const held = readFileSync(path, 'utf8');
    return quotes.filter((quote) => !held.includes(quote)).map((quote) => `${path} does not say “${quote}”`);
  });
  expect(missing).toEqual([]);
});
