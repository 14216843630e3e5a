import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { NestFactory } from '@nestjs/core';
import { AppModule } from './app.module.js';
import { Settings } from './settings.js';

const app = await NestFactory.create(AppModule, { logger: ['warn', 'error', 'fatal'] });
app.enableShutdownHooks([], { useProcessExit: true });
const { port, password, isInMemory } = app.get(Settings);
await app.listen(port, '127.0.0.1');

if (!isInMemory) {
  const worker = fileURLToPath(new URL('worker.js', import.meta.url));
  const workers = [fork(worker), fork(worker)];
  process.on('exit', () => workers.forEach((one) => one.kill()));
}
console.log(`\n  The dashboard: http://127.0.0.1:${port}/queues   user ops, password ${password}\n`);
console.log(
  `  ${isInMemory ? 'Everything runs in this process' : 'Two workers run in processes of their own'}. Ctrl-C ends it.\n`,
);
