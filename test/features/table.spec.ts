import { expect, it } from 'vitest';
import { readProofs } from '../support/proofs.js';

it('every row of the table names its proof, which exists and contains the quoted words', () => {
  const { rows, missing } = readProofs(new URL('README.md', import.meta.url));
  expect(rows.length).toBeGreaterThan(35);
  expect(missing).toEqual([]);
});
