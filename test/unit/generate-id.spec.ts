import { checkJobId, generateId, IDS_PER_LETTER, IdGenerator, LETTERS, letterOf } from '#lib/job/job-id.js';
import { describe, expect, it } from 'vitest';

const NOW = Date.UTC(2026, 6, 1);

const from = (times: readonly number[]): string[] => {
  const ids = new IdGenerator();
  return times.map((ms) => ids.next(ms));
};

/** Positions of ids that do not sort after the id before. */
const slips = (ids: readonly string[]): number[] =>
  ids.flatMap((id, at) => (at > 0 && (ids[at - 1] ?? '') >= id ? at : []));

const timeOf = (id: string | undefined) => Number.parseInt((id ?? '').slice(0, 9), 36);

describe('generateId', () => {
  it('makes ordinary ids of 18 characters a-z 0-9 and a letter A-Z, each once', () => {
    const ids = Array.from({ length: 1_000 }, () => generateId(NOW));
    for (const id of ids) expect(checkJobId(id)).toMatch(/^[0-9a-z]{18}[A-Z]$/);
    expect(slips(ids)).toEqual([]);
  });

  it('begins with the time', () => {
    expect(from([NOW, NOW + 1.75]).map(timeOf)).toEqual([NOW, NOW + 1]);
  });

  it('sorts by time, across digit changes and years', () => {
    const ids = from([0, 1, 35, 36, 1e9, NOW, NOW + 1, 36 ** 8 - 1, 36 ** 8, 36 ** 8 + 1, 36 ** 9 - 1]);
    expect(slips(ids)).toEqual([]);
    expect(new Set(ids.map((id) => id.length))).toEqual(new Set([19]));
  });

  it('stays in order within a millisecond, past 46,656 of them', () => {
    const ids = from(Array.from({ length: 100_000 }, () => NOW));
    expect(slips(ids)).toEqual([]);
    expect([timeOf(ids[46_655]), timeOf(ids[46_656])]).toEqual([NOW, NOW + 1]);
  });

  it('stays in order if the clock stands still, steps back, or returns invalid values', () => {
    const ids = from([NOW, NOW, NOW - 3_600_000, NOW - 1, 0, -5, Number.NaN, NOW, NOW + 1]);
    expect(slips(ids)).toEqual([]);
    expect(slips(from([Number.NaN, -1, 0, 1]))).toEqual([]);
  });

  it('uses one letter after another, each for the same number of ids, and starts again after the last', () => {
    // A thousand in each millisecond.
    const ids = from(Array.from({ length: 27 * IDS_PER_LETTER }, (_, i) => NOW + i / 1_000));
    const letters = ids.map((id) => id.at(-1)!);
    const rows = letters.filter((letter, i) => letter !== letters[i - 1]);
    expect(rows).toHaveLength(27);
    expect(rows.slice(0, 26).toSorted()).toEqual(LETTERS);
    expect(rows[26]).toBe(rows[0]);
    for (const [i, letter] of rows.entries()) {
      const row = letters.slice(i * IDS_PER_LETTER, (i + 1) * IDS_PER_LETTER);
      expect(row.every((one) => one === letter)).toBe(true);
    }
    expect(slips(ids)).toEqual([]);
  });

  it('keeps to one letter within a millisecond, however many it makes', () => {
    const ids = from(Array.from({ length: 2 * IDS_PER_LETTER }, () => NOW));
    expect(new Set(ids.map((id) => id.at(-1))).size).toBe(1);
    const generator = new IdGenerator();
    const [first, last] = [generator.next(NOW), Array.from(ids, () => generator.next(NOW)).at(-1)];
    expect(last?.at(-1)).toBe(first?.at(-1));
    expect(generator.next(NOW + 10).at(-1)).not.toBe(first?.at(-1));
  });

  it('differs from what another process makes at the same moment', () => {
    const [mine] = from([NOW]);
    const [other] = from([NOW]);
    expect(other?.slice(0, 9)).toBe(mine?.slice(0, 9));
    expect(other).not.toBe(mine);
  });

  it('cannot be guessed from earlier ids: each millisecond has other digits', () => {
    const ids = from([NOW, NOW, NOW + 1, NOW + 2, NOW + 3]);
    const nonces = ids.map((id) => id.slice(9, 15));
    expect(nonces[1]).toBe(nonces[0]);
    expect(new Set(nonces).size).toBe(4);
  });
});

describe('letterOf', () => {
  it.each([
    ['the last of an id as they are made', '0mwtqbbga5wm6p6000J', 'J'],
    ['the last of any id of 19 bytes', 'order 2026/11/23 #Z', 'Z'],
    ['in bytes, not in characters', 'ééééééééé'.slice(0, 9) + 'A', 'A'],
    ['none where it is longer', '0mwtqbbga5wm6p60000J', ''],
    ['none where it is shorter', '0mwtqbbga5wm6p600J', ''],
    ['none where it is longer in bytes', 'é0mwtqbbga5wm6p600J', ''],
    ['none where it ends otherwise', '0mwtqbbga5wm6p6000j', ''],
    ['none of an empty id', '', ''],
  ])('is %s', (_, id, letter) => {
    expect(letterOf(id)).toBe(letter);
  });
});
