import { expect, it } from 'vitest';
import { readProofs } from '../support/proofs.js';

it('every row of the table names what proves it, and that exists and says so', () => {
  const { rows, missing } = readProofs(new URL('README.md', import.meta.url));
  expect(rows.length).toBeGreaterThan(35);
  expect(missing).toEqual([]);
});
