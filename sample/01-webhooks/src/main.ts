import { NestFactory } from '@nestjs/core';
import type { NestExpressApplication } from '@nestjs/platform-express';
import { AppModule } from './app.module.js';
import { listen } from './listen.js';
import { MAX_REQUEST_BYTES } from './webhooks/webhook.js';

const app = await NestFactory.create<NestExpressApplication>(AppModule, {
  logger: ['warn', 'error', 'fatal'],
  // An open page would keep the application from stopping.
  forceCloseConnections: true,
});
app.useBodyParser('json', { limit: MAX_REQUEST_BYTES });
// On Ctrl-C, running deliveries end, the others go back to the queue, and the process exits with 0.
app.enableShutdownHooks([], { useProcessExit: true });

// There is no login, so only this machine can connect unless HOST is set.
const host = process.env.HOST ?? '127.0.0.1';
const port = await listen(app, Number(process.env.PORT ?? 3000), host);
console.log(`\n  Open  http://${host === '127.0.0.1' ? 'localhost' : host}:${port}\n\n  Ctrl-C ends it.\n`);
