// An application as a user writes it. It is the same for every supported Nest, platform, module format and Node. It is
// installed from the packed tarball, compiled, started, called over HTTP and closed.
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { Module, type INestApplication } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { QueueModule } from 'godwit';
import { EmailModule } from './email.module.js';
import { HealthModule } from './health.module.js';
import { tryTesting } from './try-testing.js';

@Module({
  imports: [
    QueueModule.forRoot({ connection: { url: process.env['REDIS_URL']! }, prefix: 'packed' }),
    EmailModule,
    HealthModule,
  ],
})
class AppModule {}

/** Injection tokens are classes, so `require` and `import` must return the same ones. */
async function tryBothModuleSystems(): Promise<void> {
  const require = createRequire(join(process.cwd(), 'main.js'));
  for (const name of [
    'godwit',
    'godwit/producer',
    'godwit/inspector',
    'godwit/otel',
    'godwit/alerts',
    'godwit/prometheus',
    'godwit/probes',
    'godwit/terminus',
    'godwit/testing',
  ]) {
    const required = require(name) as Record<string, unknown>;
    const imported = (await import(name)) as Record<string, unknown>;
    assert.ok(Object.keys(required).length > 0);
    for (const key of Object.keys(required)) assert.equal(imported[key], required[key], `${key} of ${name}`);
  }
}

async function create(): Promise<INestApplication> {
  const options = { logger: ['error', 'fatal'] } as const;
  if (process.env['PLATFORM'] !== 'fastify')
    return NestFactory.create(AppModule, { logger: [...options.logger] });
  // The compiler does not resolve a variable name. Only one of the platforms is installed.
  const platform = '@nestjs/platform-fastify';
  const { FastifyAdapter } = (await import(platform)) as { FastifyAdapter: new () => never };
  return NestFactory.create(AppModule, new FastifyAdapter(), { logger: [...options.logger] });
}

async function main(): Promise<void> {
  const app = await create();
  await app.listen(0, '127.0.0.1');
  const response = await fetch(`${await app.getUrl()}/signup`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ email: 'ada@example.org' }),
  });
  assert.deepEqual(await response.json(), { mail: 'sent to ada@example.org', note: 'noted ada@example.org' });
  const health = await fetch(`${await app.getUrl()}/health`);
  assert.equal(health.status, 200, await health.text());
  await app.close();
  await tryTesting();
  await tryBothModuleSystems();
  console.log('the job was completed');
}

void main();
