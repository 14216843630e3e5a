// A producer that adds items as fast as it can, and tells which were stored, for tests that kill it: node adding-items.cjs <url> <prefix> <name>
const { createProducer } = require('../../../dist/subpaths/standalone.js');

const [, , connection, prefix, name] = process.argv;
const producer = createProducer({ connection, prefix });
const queue = producer.queue('work');
const aggregate = { key: 'all', maxDelay: '50ms', maxSize: 7 };

async function run() {
  for (let i = 0; ; i += 5) {
    const items = Array.from({ length: 5 }, (_, n) => `${name} ${i + n}`);
    await Promise.all(items.map((data) => queue.add('job', data, { aggregate })));
    process.stdout.write(`${items.join('\n')}\n`);
  }
}

void run();
