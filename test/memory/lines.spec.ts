import * as fc from 'fast-check';
import { expect, it } from 'vitest';
import { byBytes, Ranking } from '#lib/memory/lines.js';
import { MemoryJob } from '#lib/memory/memory-job.js';

const wide = fc.string({
  unit: fc.constantFrom('a', 'é', '\uD7FF', '\uE000', '\uFFFD', '\u{10000}', '\u{1F600}'),
  maxLength: 4,
});

it('orders texts as their bytes in UTF-8', () => {
  fc.assert(
    fc.property(wide, wide, (a, b) => {
      expect(Math.sign(byBytes(a, b))).toBe(Buffer.compare(Buffer.from(a), Buffer.from(b)));
    }),
  );
});

it('keeps jobs by score and id, whoever comes and goes', () => {
  const drawn = fc.array(
    fc.oneof(
      { weight: 3, arbitrary: fc.record({ score: fc.nat(5), id: wide }) },
      { weight: 1, arbitrary: fc.constant('first' as const) },
      { weight: 1, arbitrary: fc.nat(30) },
    ),
    { maxLength: 80 },
  );
  fc.assert(
    fc.property(drawn, (acts) => {
      const ranking = new Ranking('delayed');
      let expected: MemoryJob[] = [];
      const compare = (a: MemoryJob, b: MemoryJob) =>
        a.score - b.score || Buffer.compare(Buffer.from(a.id), Buffer.from(b.id));
      for (const [i, act] of acts.entries()) {
        if (typeof act === 'object') {
          const job = new MemoryJob(`${act.id}${i}`, '');
          ranking.add(job, act.score);
          expected = [...expected, job].toSorted(compare);
        } else if (act === 'first') {
          const first = expected.shift() ?? null;
          if (ranking.shift() !== first) throw new Error('it gave out another one than the first');
        } else {
          const [job] = expected.splice(act % (expected.length + 1), 1);
          if (job) ranking.remove(job);
        }
        expect(ranking.first).toBe(expected[0] ?? null);
        expect(ranking.size).toBe(expected.length);
      }
      expect(ranking.sorted()).toEqual(expected);
    }),
  );
});
