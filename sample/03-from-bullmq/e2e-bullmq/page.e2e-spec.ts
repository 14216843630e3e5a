import { expect, test } from 'vitest';
import { blockSources, blocksOf, compile } from '../../../test/support/page-code.js';

test('the code that the migration guide shows as it was compiles too', { timeout: 120_000 }, () => {
  const blocks = blocksOf('docs/guides/migrating-from-bullmq.md', 'before');
  expect(blocks.length).toBeGreaterThan(5);
  expect(compile(blockSources(blocks), 'sample/03-from-bullmq/.tmp/before')).toEqual([]);
});
