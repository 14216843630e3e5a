import { execFile } from 'node:child_process';
import { createRequire } from 'node:module';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';

const lib = createRequire(import.meta.url).resolve('#lib/index.js');

/** As in a bundle, lib imports Nest, but cannot find it among the installed packages at run time. */
const application = `
  const Module = require('node:module');
  const { NestFactory } = require('@nestjs/core');
  const { QueueModule } = require(${JSON.stringify(lib)});
  const resolve = Module._resolveFilename;
  Module._resolveFilename = (name, parent, ...rest) => {
    if (name === '@nestjs/common' && parent?.filename.includes('contract')) throw new Error('cannot find ' + name);
    return resolve.call(Module, name, parent, ...rest);
  };
  const line = (text, context) => console.log(context + ' of the application: ' + text);
  const logger = { log: line, warn: line, error: line };
  const options = { logger, abortOnError: false };
  NestFactory.createApplicationContext(QueueModule.forRoot({ connection: 'memory' }), options).then((app) => app.close());
`;

it('goes to the logger of the application if the application is bundled with Nest', async () => {
  const { stdout, stderr } = await promisify(execFile)(process.execPath, [
    '--input-type=commonjs',
    '-e',
    application,
  ]);
  expect(stdout).toContain('QueueModule of the application: jobs live in the memory of this process');
  expect(stdout + stderr).not.toContain('[godwit]');
});
