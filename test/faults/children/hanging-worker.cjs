// A worker process whose handlers never end, for tests that kill it: node hanging-worker.cjs <url> <prefix> <concurrency> [<shared limit>]
require('reflect-metadata');
const { Module } = require('@nestjs/common');
const { NestFactory } = require('@nestjs/core');
const { Handle, Processor, QueueModule } = require('../../../dist/index.js');

const [, , connection, prefix, concurrency, shared] = process.argv;
const limits =
  shared === undefined ? { limits: { concurrency: 300 }, groups: { concurrency: 1 } } : { uses: [shared] };

class Hanging {
  run() {
    return new Promise(() => {});
  }
}
Handle('job')(Hanging.prototype, 'run', Object.getOwnPropertyDescriptor(Hanging.prototype, 'run'));
Processor('work', { concurrency: Number(concurrency) })(Hanging);

class App {}
Module({
  imports: [
    QueueModule.forRoot({
      connection,
      prefix,
      log: false,
      lease: { duration: '1s' },
      limits: { api: { concurrency: 3 } },
    }),
    QueueModule.registerQueue({ name: 'work', ...limits }),
  ],
  providers: [Hanging],
})(App);

void NestFactory.createApplicationContext(App, { logger: false });
