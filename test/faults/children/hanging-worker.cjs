// A worker process whose handlers never end, and block the event loop if the data is 'loop', for tests that kill it: node hanging-worker.cjs <url> <prefix> <concurrency> <options of the queue, JSON>
require('reflect-metadata');
const { Module } = require('@nestjs/common');
const { NestFactory } = require('@nestjs/core');
const { Handle, Processor, QueueModule } = require('../../../dist/index.js');

const [, , connection, prefix, concurrency, options] = process.argv;

class Hanging {
  run({ data }) {
    while (data === 'loop');
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
    QueueModule.registerQueue({ name: 'work', ...JSON.parse(options) }),
  ],
  providers: [Hanging],
})(App);

void NestFactory.createApplicationContext(App, { logger: false }).then((app) => app.enableShutdownHooks());
