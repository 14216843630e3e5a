import { expect, it } from 'vitest';
import { brief, short, signedPercent, sizeLabel } from '../../bench/src/report/words.js';

it.each([
  [-0.034, '−3 %'],
  [0.5, '+50 %'],
  [0.001, '±0 %'],
  [999, '+99,900 %'],
])('a change of %d is written as %s', (share, said) => {
  expect(signedPercent(share)).toBe(said);
});

it.each([
  [-0.123, '−0.12'],
  [-0.001, '0.00'],
  [1, '1.00'],
])('a slope of %d is written as %s', (slope, said) => {
  expect(short(slope)).toBe(said);
});

it.each([
  [1, undefined, '1'],
  [1_000, undefined, '1k'],
  [10_000_000, undefined, '10M'],
  [64, 'bytes', '64 B'],
  [1_024, 'bytes', '1 KiB'],
  [102_400, 'bytes', '100 KiB'],
] as const)('a size of %d %s is written as %s', (size, unit, said) => {
  expect(sizeLabel(size, unit)).toBe(said);
});

it.each([
  [2.04, '2.0'],
  [0.1234, '0.12'],
  [51.26, '51.3'],
  [190_123.4, '190,123'],
  [3, '3'],
])('next to a bar %d is written as %s', (value, said) => {
  expect(brief(value)).toBe(said);
});
