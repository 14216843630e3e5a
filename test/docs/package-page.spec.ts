import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { missingAddresses, packagePage, type Package } from '../../tools/package-page.mjs';
import { readPage } from '../support/page-code.js';
import { ROOT } from '../support/sources.js';

const manifest = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as Package;
const filled: Package = {
  version: '1.2.3',
  repository: { url: 'git+https://github.com/owner/godwit.git' },
  homepage: 'https://godwit.example',
  documentation: '',
};

describe('the page of the package', () => {
  it('has absolute links and pictures once the repository has an address', () => {
    const page = packagePage(readPage('README.md'), filled);
    const targets = [
      ...[...page.matchAll(/\]\(([^)\s]+)\)/g)].map(([, target]) => target!),
      ...[...page.matchAll(/\b(?:src|srcset)="([^"]+)"/g)].map(([, target]) => target!),
    ];
    expect(targets.length).toBeGreaterThan(20);
    expect(targets.filter((target) => !target.startsWith('https://'))).toEqual([]);
    expect(page).toContain('](https://github.com/owner/godwit/blob/v1.2.3/docs/tutorial.md)');
    expect(page).toContain('(https://github.com/owner/godwit/raw/v1.2.3/docs/images/dashboard.png)');
    expect(page).toContain(
      '"https://github.com/owner/godwit/raw/v1.2.3/bench/plots/comparison-light.svg?sanitize=true"',
    );
  });

  it('links pages of docs/ to the address where they are published, if that is another one', () => {
    const documentation = 'https://godwit.example/docs/';
    expect(packagePage('[a](docs/tutorial.md#x) [b](LICENSE) [c](#d)', { ...filled, documentation })).toBe(
      '[a](https://godwit.example/docs/tutorial.md#x) [b](https://github.com/owner/godwit/blob/v1.2.3/LICENSE) [c](#d)',
    );
  });

  it('stays as it is while there is no address', () => {
    expect(packagePage('[a](b.md)', { ...filled, repository: { url: '' } })).toBe('[a](b.md)');
  });

  it('cannot be published while an address is missing', () => {
    expect(missingAddresses(filled)).toEqual([]);
    expect(missingAddresses({ ...filled, repository: { url: '' }, homepage: '' })).toEqual([
      'repository.url',
      'homepage',
    ]);
    // The owner fills in one place. A half-filled place is a mistake.
    expect([0, 2]).toContain(missingAddresses(manifest).length);
  });
});
