import { execFile } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { NestConflictError, type NestCopy } from '#lib/errors.js';
import { atEnd } from '../support/cleanup.js';
import { ROOT } from '../support/sources.js';

const core = dirname(createRequire(import.meta.url).resolve('@nestjs/core/package.json'));

/** A Nest that is installed for this application alone. Its dependencies are found in the folders above. */
function secondCopy(): { folder: string; copy: NestCopy } {
  // Inside of the repository, whose node_modules holds all other packages.
  mkdirSync(join(ROOT, '.tmp'), { recursive: true });
  const folder = realpathSync(mkdtempSync(join(ROOT, '.tmp', 'two nests (of one) ')));
  atEnd(() => rmSync(folder, { recursive: true, force: true }));
  const nest = join(folder, 'node_modules/@nestjs');
  for (const name of ['core', 'common']) {
    cpSync(join(dirname(core), name), join(nest, name), { recursive: true, dereference: true });
  }
  const path = join(nest, 'core/package.json');
  const manifest = JSON.parse(readFileSync(path, 'utf8')) as { version: string };
  writeFileSync(path, JSON.stringify({ ...manifest, version: '13.0.0' }));
  return { folder, copy: { version: '13.0.0', path: dirname(path) } };
}

const application = (lib: string) => `
  import { Module } from '@nestjs/common';
  import { NestFactory } from '@nestjs/core';
  import { Handle, Processor, QueueModule } from ${JSON.stringify(lib)};
  class Mails { welcome() {} }
  Handle('welcome')(Mails.prototype, 'welcome', Object.getOwnPropertyDescriptor(Mails.prototype, 'welcome'));
  Processor('email')(Mails);
  class AppModule {}
  const queue = QueueModule.registerQueue({ name: 'email' });
  Module({ imports: [QueueModule.forRoot(), queue], providers: [Mails] })(AppModule);
  const options = { logger: false, abortOnError: false };
  const said = await NestFactory.createApplicationContext(AppModule, options).then(
    () => ({ code: 'it started' }),
    ({ name, code, message, application, found }) => ({ name, code, message, application, found }),
  );
  console.log(JSON.stringify(said));
  process.exit();`;

it('an application with another copy of Nest than Godwit gets an error with both versions', async () => {
  const { folder, copy } = secondCopy();
  const main = join(folder, 'main.mjs');
  writeFileSync(main, application(new URL('../../dist/index.js', import.meta.url).href));
  const { stdout } = await promisify(execFile)(process.execPath, [main], { cwd: folder, timeout: 60_000 });
  const { version } = JSON.parse(readFileSync(join(core, 'package.json'), 'utf8')) as { version: string };
  const expected = new NestConflictError(copy, { version, path: realpathSync(core) });
  expect(JSON.parse(stdout)).toEqual({
    name: 'NestConflictError',
    code: 'GODWIT_NEST_CONFLICT',
    message: expected.message,
    application: expected.application,
    found: expected.found,
  });
  expect(expected.message).toBe(
    `the application runs on @nestjs/core 13.0.0 (${copy.path}), but godwit finds @nestjs/core ${version} (${realpathSync(core)}); ` +
      'there must be only one copy, because each knows only its own classes: npm ls @nestjs/core shows which package uses which; ' +
      'give all of them the same version, and run npm dedupe',
  );
}, 90_000);
