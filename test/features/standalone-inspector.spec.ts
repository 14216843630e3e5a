import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { createInspector } from '#lib/subpaths/inspector.js';
import { atEnd } from '../support/cleanup.js';
import { bootQueue, PATIENT } from '../support/queue-app.js';
import { useRedis } from '../support/redis.js';
import { ROOT } from '../support/sources.js';
import { latch, until } from '../support/wait.js';

const redis = useRedis();

const inspect = () => {
  const inspector = createInspector({ connection: redis.url, prefix: redis.prefix });
  atEnd(() => inspector.close());
  return inspector;
};

describe('createInspector', () => {
  it('sees all queues and workers of a prefix, and has the verbs of each queue', async () => {
    const end = latch('the end of the job');
    const app = await bootQueue(redis, {
      handlers: { slow: () => end.promise },
      queues: [{ name: 'other' }],
      root: { history: true },
    });
    const { id } = await app.queue.add('slow', null);
    const { id: waiting } = await app.queueOf('other').add('x', null);
    const inspector = inspect();
    await until(async () => (await inspector.workers())[0]?.pools[0]?.running === 1, PATIENT);
    const queues = await inspector.queues();
    expect(queues).toMatchObject([
      { name: 'other', counts: { waiting: 1 } },
      { name: 'work', counts: { active: 1 } },
    ]);
    expect(await inspector.queue('other').get(waiting)).toMatchObject({ name: 'x', state: 'waiting' });
    expect(await inspector.queue('work').pause()).toBe(true);
    expect(await app.queue.isPaused()).toBe(true);
    end.open();
    await app.ended(id);
    await app.runtime.stop();
    expect((await inspector.series('work')).total).toMatchObject({ added: 1, completed: 1 });
    expect(inspector.queue('work')).toBe(inspector.queue('work'));
  });

  it('names itself in its errors', () => {
    expect(() => createInspector({ connection: 'memory' })).toThrow(/createInspector\(\)\.connection/);
    expect(() => createInspector({ prefxi: 'x' } as never)).toThrow(/createInspector\(\)\.prefxi.*prefix/);
  });

  it('loads neither Nest nor RxJS, and lets the program exit once it is closed', async () => {
    const code = `
      const { createInspector } = require('godwit/inspector');
      (async () => {
        const inspector = createInspector(${JSON.stringify({ connection: redis.url, prefix: redis.prefix })});
        await inspector.queues();
        await inspector.workers();
        await inspector.close();
        console.log(Object.keys(require.cache).filter((file) => /nestjs|rxjs|reflect-metadata/.test(file)).length);
      })();`;
    const { stdout } = await promisify(execFile)(process.execPath, ['-e', code], {
      cwd: ROOT,
      timeout: 20_000,
    });
    expect(stdout).toBe('0\n');
  });
});
