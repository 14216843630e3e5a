// A test that forgets to close its module. It prints what ran; nothing of it may keep the process alive.
import 'reflect-metadata';
import { Test } from '@nestjs/testing';
import { Handle } from '#lib/decorators/handle.decorator.js';
import { Processor } from '#lib/decorators/processor.decorator.js';
import { getQueueToken } from '#lib/decorators/metadata.js';
import { QueueEvents } from '#lib/events/queue-events.js';
import { QueueModule } from '#lib/module/queue.module.js';
import { QueueTesting, QueueTestingModule } from '#lib/subpaths/testing.js';

class Echo {
  echo(job) {
    return job.data;
  }
}
Handle()(Echo.prototype, 'echo', Object.getOwnPropertyDescriptor(Echo.prototype, 'echo'));
Processor('work')(Echo);

const imports = [QueueTestingModule.forRoot(), QueueModule.registerQueue({ name: 'work' })];
const module = await Test.createTestingModule({ imports, providers: [Echo] })
  .setLogger(false)
  .compile();
await module.init();
const testing = module.get(QueueTesting);
const queue = module.get(getQueueToken('work'), { strict: false });
module
  .get(QueueEvents)
  .of('work')
  .subscribe(() => {});
const said = [await testing.run('work', 'a', 'run'), await queue.addAndWait('b', 'waited')];
await queue.schedules.upsert('hourly', { every: '1h' }, { name: 'c', data: 'scheduled' });
await queue.add('d', 'delayed', { delay: '1h' });
await queue.add('e', 'much later', { delay: '10d' });
said.push(...(await testing.advance('1h', { run: true })).map(({ result }) => result));
console.log(
  said
    .map(String)
    .toSorted((a, b) => (a < b ? -1 : 1))
    .join(', '),
);
