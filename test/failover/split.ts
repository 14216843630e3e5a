import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { findServer } from '../../tools/redis/binary.mjs';
import { atEnd, temporaryFolder } from '../support/cleanup.js';
import { until } from '../support/wait.js';
import { Load, TENANT_COUNT, TENANTS } from './load.js';
import type { Failover } from './sentinel-failover.js';

/** The two halves of a network that splits. The address of each stays the same. */
const HALVES = { left: '10.77.1.1', right: '10.77.1.2' } as const;
const LINE = { left: '10.77.0.1', right: '10.77.0.2' } as const;
const PORT = 7600;
const SENTINEL_PORT = 7700;
const NAME = 'mymaster';
const SPLIT_MS = 8_000;
const AFTER_MS = 2_000;

type Half = keyof typeof HALVES;

const space = (half: Half) => `godwit-${half}`;
const wire = (half: Half) => `gw-${half}`;
const other = (half: Half): Half => (half === 'left' ? 'right' : 'left');
const ip = (words: string) => execFileSync('ip', words.split(' '), { stdio: 'pipe' }).toString();
const inside = (half: Half) => ['ip', 'netns', 'exec', space(half)];

/**
 * The network splits under load: on one side the primary with the application, on the other its replica with the sentinels,
 * which make it the primary. Both take writes until the connection is back. Needs root and Linux, for network namespaces.
 */
export async function networkSplit(): Promise<Failover> {
  layNetwork();
  const dir = temporaryFolder();
  serve('left', dir, PORT, []);
  serve('right', dir, PORT, ['--replicaof', HALVES.left, String(PORT)]);
  await until(() => say('right', PORT, 'info replication').includes('master_link_status:up'), {
    timeout: 20_000,
  });
  for (let i = 0; i < 3; i++) watch(dir, SENTINEL_PORT + i);
  await until(() => [0, 1, 2].every((i) => seesAll(SENTINEL_PORT + i)), { timeout: 30_000 });
  const sentinels = [0, 1, 2].map((i) => ({ host: HALVES.right, port: SENTINEL_PORT + i }));
  const load = await Load.start({
    root: { connection: { name: NAME, sentinels } },
    queues: [{ name: 'local' }, { name: 'replicated', durability: 'replicated' }, TENANTS],
    before: inside('left'),
  });

  const struckAt = Date.now();
  ip(`-n ${space('left')} link set ${wire('left')} down`);
  let switchedAt = 0;
  const isSwitched = () =>
    say('right', SENTINEL_PORT, `sentinel get-master-addr-by-name ${NAME}`).includes(HALVES.right);
  await until(() => isSwitched() && (switchedAt = Date.now()), { timeout: 30_000, what: 'a failover' });
  await pause(Math.max(0, SPLIT_MS - (Date.now() - struckAt)));
  const mendedAt = Date.now();
  ip(`-n ${space('left')} link set ${wire('left')} up`);
  ip(`-n ${space('left')} route replace ${HALVES.right} via ${LINE.right}`);
  // Before it reconnects, the old primary serves it.
  const on = (queue: string) => () => {
    const history = load.history();
    const up = history.upAt('command') ?? 0;
    return up > mendedAt && history.resumedAt(queue, up);
  };
  const resumedAt = await until(on('local'), { timeout: 60_000, what: 'work goes on' });
  const back = await until(on('replicated'), { timeout: 60_000, what: 'replicated adds go on' });
  await until(() => Date.now() - back > AFTER_MS, { timeout: AFTER_MS * 2 });
  const finish = await load.finish();
  const history = load.history();
  return {
    // There is no other primary to reach before the network heals.
    resumedMs: resumedAt - mendedAt,
    switchedMs: switchedAt - struckAt,
    local: history.account('local'),
    replicated: history.account('replicated'),
    tenants: history.account('tenants'),
    mostOfGroup: history.mostOfGroup('tenants', (made) => made % TENANT_COUNT, back),
    finish,
  };
}

function layNetwork(): void {
  const clear = () => {
    for (const half of ['left', 'right'] as const) {
      try {
        ip(`netns del ${space(half)}`);
      } catch {
        // There was none.
      }
    }
  };
  clear();
  atEnd(clear);
  for (const half of ['left', 'right'] as const) ip(`netns add ${space(half)}`);
  ip(
    `link add ${wire('left')} netns ${space('left')} type veth peer name ${wire('right')} netns ${space('right')}`,
  );
  for (const half of ['left', 'right'] as const) {
    const at = `-n ${space(half)}`;
    ip(`${at} link set lo up`);
    ip(`${at} addr add ${HALVES[half]}/32 dev lo`);
    ip(`${at} addr add ${LINE[half]}/30 dev ${wire(half)}`);
    ip(`${at} link set ${wire(half)} up`);
    ip(`${at} route add ${HALVES[other(half)]} via ${LINE[other(half)]}`);
  }
}

function serve(half: Half, dir: string, port: number, args: readonly string[]): void {
  const settings = `--port ${port} --bind ${HALVES[half]} --replica-announce-ip ${HALVES[half]} --dir ${dir}`;
  const more = `--dbfilename ${half}.rdb --appendonly no --repl-diskless-sync-delay 0 --protected-mode no`;
  run(half, [...settings.split(' '), ...more.split(' '), '--save', '', ...args]);
}

function watch(dir: string, port: number): void {
  const conf = join(dir, `sentinel-${port}.conf`);
  const lines = [
    `port ${port}`,
    `bind ${HALVES.right}`,
    `dir ${dir}`,
    'protected-mode no',
    `sentinel announce-ip ${HALVES.right}`,
    `sentinel monitor ${NAME} ${HALVES.left} ${PORT} 2`,
    `sentinel down-after-milliseconds ${NAME} 1000`,
    `sentinel failover-timeout ${NAME} 5000`,
  ];
  writeFileSync(conf, `${lines.join('\n')}\n`);
  run('right', [conf, '--sentinel']);
}

function run(half: Half, args: readonly string[]): void {
  const [command, ...words] = [...inside(half), findServer({ forTests: true }), ...args];
  const server = spawn(command!, words, { stdio: 'ignore' });
  const exited = once(server, 'exit');
  atEnd(async () => {
    server.kill('SIGKILL');
    await exited;
  });
}

function say(half: Half, port: number, words: string): string {
  const [command, ...args] = [
    ...inside(half),
    'redis-cli',
    '-h',
    HALVES[half],
    '-p',
    String(port),
    ...words.split(' '),
  ];
  return execFileSync(command!, args, { stdio: 'pipe', timeout: 3_000 }).toString();
}

function seesAll(port: number): boolean {
  const text = say('right', port, `sentinel master ${NAME}`);
  return (
    /num-other-sentinels\n2\n/.test(text) && /num-slaves\n1\n/.test(text) && /\nflags\nmaster\n/.test(text)
  );
}
