import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { LinkedSet, type Linked } from '#lib/contract/linked-set.js';
import { LARGE, mibLeftOf } from '../support/young.js';

interface Item extends Linked<Item> {
  readonly text: string;
}

const item = (text = ''): Item => ({ text, before: undefined, after: undefined, isIn: false });

describe('a linked set', () => {
  it('has the same entries as a Set, in the same order', () => {
    const items = Array.from({ length: 8 }, (_, i) => item(String(i)));
    const step = fc.record({
      does: fc.constantFrom('add', 'add', 'delete'),
      which: fc.nat(items.length - 1),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        const ours = new LinkedSet<Item>();
        const theirs = new Set<Item>();
        for (const { does, which } of steps) {
          const one = items[which]!;
          const [did, didTheirs] = [ours, theirs].map((set) =>
            does === 'delete' ? set.delete(one) : void set.add(one),
          );
          expect(did).toBe(didTheirs);
          expect([...ours]).toEqual([...theirs]);
          expect(ours.size).toBe(theirs.size);
        }
        for (const one of ours) ours.delete(one);
        expect(items.some(({ before, after, isIn }) => before || after || isIn)).toBe(false);
      }),
    );
  });

  it('continues after an entry that is removed during iteration, and skips removed ones', () => {
    const set = new LinkedSet<Item>();
    const [a, b, c, d] = [item('a'), item('b'), item('c'), item('d')] as const;
    for (const one of [a, b, c, d]) set.add(one);
    const seen: string[] = [];
    for (const one of set) {
      seen.push(one.text);
      if (one === a) for (const leaving of [a, c]) set.delete(leaving);
    }
    expect(seen).toEqual(['a', 'b', 'd']);
  });

  it('lets minor garbage collections free removed entries', async () => {
    const set = new LinkedSet<Item>();
    const left = await mibLeftOf(300, () => {
      set.add(item(Buffer.alloc(LARGE, 'x').toString()));
      // There is always an entry that a new table would have to copy.
      if (set.size > 3) set.delete([...set][0]!);
    });
    expect(left).toBeLessThan(10);
  });
});
