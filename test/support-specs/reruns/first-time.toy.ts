import { existsSync, writeFileSync } from 'node:fs';
import { expect, it } from 'vitest';

it('passes beside', () => expect(1).toBe(1));

it('fails the first time', () => {
  const marker = process.env['MARKER']!;
  const isSecond = existsSync(marker);
  writeFileSync(marker, '');
  expect(isSecond).toBe(true);
});
