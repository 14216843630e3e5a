import { PassThrough } from 'node:stream';
import { expect, it, vi } from 'vitest';
import { atEnd } from '../support/cleanup.js';
import { bootQueue, PATIENT } from '../support/queue-app.js';
import { useRedis } from '../support/redis.js';
import { useServer } from '../support/server.js';
import { until } from '../support/wait.js';
import { godwitOn, runOn } from './support.js';

const redis = useRedis();
const server = useServer();
const own = useRedis({ server });

it.each([
  ['cancel', 'work', '--all'],
  ['clean', 'work', 'waiting'],
  ['clean', 'work', 'waiting', '--name', 'x'],
])(
  '%s %s %s stops at a signal without a rate, and says and records how many it changed',
  async (...words) => {
    const { queue } = await bootQueue(redis, { watch: false });
    const total = 60_000;
    for (let at = 0; at < total; at += 5_000)
      await queue.addBulk(Array.from({ length: 5_000 }, (_, i) => ({ name: 'x', data: i })));
    const command = godwitOn(redis, ...words, '--yes');
    await until(async () => (await queue.counts()).waiting < total, PATIENT);
    command.kill('SIGINT');
    const { code, out, err } = await command.result();
    const changed = Number(/^(\d+) /.exec(out)?.[1]);
    expect([code, err, (await queue.counts()).waiting]).toEqual([130, '', total - changed]);
    expect(changed).toBeLessThan(total);
    const { actions } = JSON.parse((await runOn(redis, 'actions', '--json')).out) as {
      actions: { count: number | null; result: string }[];
    };
    expect(actions[0]).toMatchObject({ count: changed, result: 'ok' });
  },
);

it('remove with a signal that has aborted changes nothing', async () => {
  const { queue } = await bootQueue(redis, {
    watch: false,
    queue: { defaults: { attempts: 1 } },
    handlers: {
      bad: () => {
        throw new Error('no');
      },
    },
  });
  await queue.add('bad', null);
  await until(async () => (await queue.counts()).dead === 1, PATIENT);
  const signal = AbortSignal.abort();
  expect(await queue.remove({ state: 'dead' }, { signal })).toBe(0);
  expect(await queue.remove({ state: 'dead' }, { signal: new AbortController().signal })).toBe(1);
});

it('a cancel of no job is recorded with the count 0', async () => {
  const { queue } = await bootQueue(redis, { watch: false });
  expect(await queue.as('ada').cancel({})).toBe(0);
  const { out } = await runOn(redis, 'actions', '--json');
  expect(JSON.parse(out)).toMatchObject({ actions: [{ action: 'job.cancel', count: 0 }, { count: null }] });
});

it.each([
  ['Ctrl-C', '\u0003', 130],
  ['Ctrl-D', '\u0004', 1],
  ['n', 'n\r', 1],
  ['yes', 'yes\r', 0],
])('a question that is answered with %s ends with its exit code', async (_, keys, exitCode) => {
  const { queue } = await bootQueue(redis, { watch: false });
  await queue.add('x', null);
  const terminal = () =>
    Object.assign(new PassThrough(), { isTTY: true, columns: 80, setRawMode: () => true });
  const [stdin, stderr] = [terminal(), terminal()];
  for (const [name, stream] of Object.entries({ stdin, stderr })) {
    const spy = vi.spyOn(process, name as 'stdin', 'get').mockReturnValue(stream as never);
    atEnd(() => spy.mockRestore());
  }
  stdin.write(keys);
  expect((await runOn(redis, 'obliterate', 'work')).code).toBe(exitCode);
  expect((await queue.counts()).waiting).toBe(exitCode === 0 ? 0 : 1);
});

it('tail warns once while Redis is away, and once when events arrive again', async () => {
  const { queue } = await bootQueue(own, { watch: false });
  await queue.add('x', null, { id: 'before' });
  const command = godwitOn(own, 'tail', 'work', '--since', '0');
  await command.said(/ before\n/);
  await server.kill9();
  await command.said(/^godwit: no events arrive: .+$/m, 'err');
  await server.restart();
  await command.said(/^godwit: events arrive again$/m, 'err');
  expect((await command.end('SIGINT')).code).toBe(130);
  expect(command.err.match(/no events arrive/g)).toHaveLength(1);
});

it('an act at a rate that fails says how many jobs it changed before', async () => {
  const { queue } = await bootQueue(own, { watch: false });
  await queue.addBulk(Array.from({ length: 1_000 }, (_, i) => ({ name: 'x', data: i })));
  const command = godwitOn(own, 'cancel', 'work', '--all', '--rate', '100/s', '--yes');
  const [first] = (await command.said(/^\d+ cancelled or told to stop$/m)).split(' ');
  await server.kill9();
  const { code, out } = await command.result();
  expect(code).toBe(1);
  const last = /^(\d+) cancelled or told to stop before it failed\n$/m.exec(out)?.[1];
  expect(Number(last)).toBeGreaterThanOrEqual(Number(first));
  await server.restart();
});
