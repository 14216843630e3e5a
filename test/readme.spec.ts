import { describe, expect, it } from 'vitest';
import { blockSources, blocksOf, compile } from './support/page-code.js';

describe('the README', () => {
  it('has only code that compiles', { timeout: 60_000 }, () => {
    const blocks = blocksOf('README.md');
    expect(blocks.length).toBeGreaterThanOrEqual(4);
    expect(compile(blockSources(blocks), '.tmp/readme')).toEqual([]);
  });

  it('would be caught with code that does not', { timeout: 60_000 }, () => {
    const broken = {
      page: 'X.md',
      line: 10,
      code: `import { Queue } from 'godwit';\nexport const n: number = 'no';\n`,
    };
    expect(
      compile(blockSources([broken]), '.tmp/readme-broken').some((fault) => fault.startsWith('X.md:11')),
    ).toBe(true);
  });
});
