import { describe, expect, it } from 'vitest';
import { columnsOf, padTo } from '#lib/subpaths/cli/columns.js';
import { cut, right, table, wrapped } from '#lib/subpaths/cli/table.js';

const columns = [{ title: '' }, cut('WHAT'), wrapped('FOUND')];
const found = 'its oldest job has waited 20 m: add workers or concurrency; godwit workers mail';
const shown = (what: string, text: string, width?: number) =>
  table(columns, [[{ text: 'warn', style: 'yellow' }, what, text]], { width, color: false })
    .text.trimEnd()
    .split('\n');

describe('a column that wraps', () => {
  it('continues on the next line, below its beginning', () => {
    expect(shown('queue mail', found, 61)).toEqual([
      '      WHAT        FOUND',
      'warn  queue mail  its oldest job has waited 20 m: add workers',
      '                  or concurrency; godwit workers mail',
    ]);
  });

  it('is one line where the line fits, and in a pipe', () => {
    for (const width of [200, undefined])
      expect(shown('queue mail', found, width)).toEqual([
        '      WHAT        FOUND',
        `warn  queue mail  ${found}`,
      ]);
  });

  it('leaves room by cutting other columns, and no word is cut', () => {
    const queue = `q-${'long'.repeat(20)}`;
    const [, ...lines] = shown(`queue ${queue}`, `is paused; godwit resume ${queue}`, 80);
    expect(lines[0]).toMatch(/^warn {2}queue q-longlong.*… {2}is paused; godwit resume$/);
    expect(lines[0]!.length).toBeLessThanOrEqual(80);
    expect(lines[1]!.trim()).toBe(queue);
  });
});

it.each([
  ['plain', 5],
  ['日本語', 6],
  ['한국어 이름', 11],
  ['ｆｕｌｌ', 8],
  ['ﾊﾝｶｸ', 4],
  ['𠮷野家', 6],
  ['😀', 2],
  ['👨‍👩‍👧', 2],
  ['❤️', 2],
  ['🇩🇪', 2],
  ['e\u0301a', 2],
  ['العربية', 7],
  ['ไทยกำ', 5],
  ['…№✓', 3],
])('%s takes %d columns', (text, columns) => {
  expect(columnsOf(text)).toBe(columns);
  expect(columnsOf(padTo(text, 20))).toBe(20);
});

it('wide names stay aligned, and are cut between characters at the width of the screen', () => {
  const rows = [
    ['plain', 1],
    ['請求書を送る😀', 2],
    ['👨‍👩‍👧 and their long name', 3],
  ] as const;
  const columns = [cut('NAME'), right('COUNT')];
  const lines = (width?: number) => table(columns, rows, { width, color: false }).text.trimEnd().split('\n');
  expect(lines()).toEqual([
    'NAME                    COUNT',
    'plain                       1',
    '請求書を送る😀              2',
    '👨‍👩‍👧 and their long name      3',
  ]);
  expect(lines(17)).toEqual([
    'NAME        COUNT',
    'plain           1',
    '請求書を…       2',
    '👨‍👩‍👧 and th…      3',
  ]);
});
