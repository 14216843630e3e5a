import { NestFactory } from '@nestjs/core';
import { AppModule } from './app.module.js';
import { listen } from './listen.js';

const app = await NestFactory.create(AppModule, {
  logger: ['warn', 'error', 'fatal'],
  // A page that is still watching would hold the application open.
  forceCloseConnections: true,
});
// Ctrl-C lets running jobs finish. If Redis keeps running, the schedules continue at the next start.
app.enableShutdownHooks([], { useProcessExit: true });

// There is no login, so only this machine gets in unless HOST says otherwise.
const host = process.env.HOST ?? '127.0.0.1';
const port = await listen(app, Number(process.env.PORT ?? 3000), host);
console.log(`\n  Open  http://${host === '127.0.0.1' ? 'localhost' : host}:${port}\n\n  Ctrl-C ends it.\n`);
