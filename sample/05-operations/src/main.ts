import { fileURLToPath } from 'node:url';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { AppModule } from './app.module.js';
import { Settings } from './settings.js';
import { WorkerProcesses } from './worker-processes.js';

const { connection, prefix, port, password, isInMemory } = new Settings();
const probesPort = port === 0 ? 0 : port + 1;
const worker = fileURLToPath(new URL('worker.js', import.meta.url));
const workers = { provide: WorkerProcesses, useFactory: () => new WorkerProcesses(worker, probesPort) };

@Module({ imports: [AppModule], providers: isInMemory ? [] : [workers] })
class MainModule {}

const app = await NestFactory.create(MainModule, { logger: ['warn', 'error', 'fatal'] });
app.enableShutdownHooks([], { useProcessExit: true });
await app.listen(port, '127.0.0.1');
console.log(`\n  The dashboard: http://127.0.0.1:${port}/queues   user ops, password ${password}\n`);
console.log(
  `  Metrics for Prometheus: http://127.0.0.1:${port}/metrics, the same user${isInMemory ? '' : `; of the workers: http://127.0.0.1:${probesPort}/metrics and http://127.0.0.1:${probesPort + 1}/metrics`}`,
);
console.log(
  isInMemory
    ? ''
    : `  The command, in another terminal: node dist/subpaths/cli.js doctor --url ${connection} --prefix ${prefix}\n`,
);
console.log(
  `  ${isInMemory ? 'Everything runs in this process' : 'Two workers run in processes of their own'}. Ctrl-C ends it.\n`,
);
