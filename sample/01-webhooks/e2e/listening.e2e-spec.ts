import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { NestFactory } from '@nestjs/core';
import { expect, test } from 'vitest';
import { atEnd } from '../../../test/support/cleanup.js';
import { listen } from '../src/listen.js';
import { PageModule } from '../src/page/page.module.js';

test('takes the next free port where the one asked for is taken', async () => {
  const other = createServer((_, response) => response.end('other')).listen(0, '127.0.0.1');
  atEnd(() => other.close());
  await once(other, 'listening');
  const taken = (other.address() as AddressInfo).port;

  const app = await NestFactory.create(PageModule, { logger: false, forceCloseConnections: true });
  atEnd(() => app.close());
  const port = await listen(app, taken, '127.0.0.1');
  expect(port).toBeGreaterThan(taken);
  const page = await fetch(`http://127.0.0.1:${port}/`);
  expect(await page.text()).toContain('<title>Webhooks</title>');
  expect(page.headers.get('content-security-policy')).toMatch(/^default-src 'none'; script-src 'self';/);
});
