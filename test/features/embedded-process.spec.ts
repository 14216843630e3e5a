import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';
import { afterAll, describe, expect, it } from 'vitest';
import { freePort } from '../../tools/free-port.mjs';
import { atEnd, temporaryFolder } from '../support/cleanup.js';
import { blocksOf, readPage } from '../support/page-code.js';
import { until, within } from '../support/wait.js';

/** Starting a program that is compiled first takes long on a busy machine. */
const PATIENT = { timeout: 60_000 } as const;
const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const TYPESCRIPT = ['--import', './tools/typescript.mjs'];
const NO_IOREDIS = ['--import', './test/support/no-ioredis.mjs'];

interface Program {
  readonly url: string;
  /** Its output so far, without colours. */
  readonly text: () => string;
  /** Resolves once it has printed that. */
  readonly said: (match: RegExp) => Promise<unknown>;
  /** Resolves once it answers requests. Nest logs its start before that. */
  readonly listens: () => Promise<unknown>;
  readonly signal: (signal: NodeJS.Signals) => void;
  /** Ends it with SIGTERM; resolves with its exit code or the signal. */
  readonly end: () => Promise<number | NodeJS.Signals>;
  /** The same for a program that ends by itself. */
  readonly ended: () => Promise<number | NodeJS.Signals>;
}

/** A program of this repository. No Redis is named, and none is on PATH. */
async function startProgram(args: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<Program> {
  const path = temporaryFolder();
  symlinkSync('/bin/sh', join(path, 'sh'));
  const port = await freePort();
  const child: ChildProcess = spawn(process.execPath, args, {
    cwd: ROOT,
    env: {
      ...process.env,
      REDIS_URL: undefined,
      NODE_ENV: undefined,
      PATH: path,
      PORT: String(port),
      ...env,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  atEnd(() => child.kill('SIGKILL'));
  let printed = '';
  for (const stream of [child.stdout!, child.stderr!])
    stream.setEncoding('utf8').on('data', (more: string) => (printed += more));
  // oxlint-disable-next-line no-control-regex
  const text = () => printed.replaceAll(/\u001b\[\d+m/g, '');
  const closed = once(child, 'close') as Promise<[number | null, NodeJS.Signals | null]>;
  const url = `http://127.0.0.1:${port}`;
  const ended = async () => {
    const [code, signal] = await within(closed, {
      ...PATIENT,
      what: () => `it ends, and it printed:\n${text()}`,
    });
    return code ?? signal!;
  };
  return {
    url,
    text,
    said: (match) =>
      until(() => match.test(text()), {
        ...PATIENT,
        what: () => `it prints ${match.source}, and it printed:\n${text()}`,
      }),
    listens: () => until(async () => (await fetch(url)).text().then(() => true), { ...PATIENT, what: text }),
    signal: (signal) => void child.kill(signal),
    end: () => {
      child.kill('SIGTERM');
      return ended();
    },
    ended,
  };
}

const FOLDER = join(ROOT, '.tmp', `programs-${process.pid}`);

/** The program as it stands, as an ES module or as CommonJS. `docs/pages.spec.ts` checks its types. */
function compiled(name: string, code: string, extension: 'js' | 'cjs' = 'js'): string {
  const path = join(FOLDER, `${name}.${extension}`);
  mkdirSync(dirname(path), { recursive: true });
  const { outputText } = ts.transpileModule(code, {
    compilerOptions: {
      target: ts.ScriptTarget.ES2022,
      module: extension === 'js' ? ts.ModuleKind.ESNext : ts.ModuleKind.CommonJS,
      experimentalDecorators: true,
      emitDecoratorMetadata: true,
    },
  });
  writeFileSync(path, outputText.replaceAll(/(["'])(\.\/.+?)\.js\1/g, `$1$2.${extension}$1`));
  return path;
}

afterAll(() => rmSync(FOLDER, { recursive: true, force: true }));

const post = (url: string, body: unknown) =>
  fetch(url, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) });

describe.each(['js', 'cjs'] as const)(
  'the quick start of the README, as .%s',
  { timeout: 120_000 },
  (extension) => {
    const start = (env: NodeJS.ProcessEnv = {}) => {
      const files = blocksOf('README.md').map(({ file, code }) =>
        compiled(file!.replace(/\.ts$/, ''), code, extension),
      );
      return startProgram([...NO_IOREDIS, files.find((file) => file.endsWith(`main.${extension}`))!], env);
    };

    it('answers a request and handles the job, without a Redis and without ioredis', async () => {
      const { url, said, text, listens, end } = await start();
      await said(/Nest application successfully started/);
      await listens();
      const email = 'ada@example.com';
      const response = await post(`${url}/signup`, { email });
      expect(response.status).toBe(201);
      expect(await response.json()).toMatchObject({ id: expect.any(String), duplicate: false });
      await said(/^mail to ada@example\.com$/m);
      expect(text().match(/WARN|ERROR/g)).toEqual(['WARN']);
      expect(text()).toMatch(/WARN.*jobs live in the memory of this process: they are lost when it exits/);
      expect(await end()).toBe('SIGTERM');
      expect(text()).toContain("queue 'email' stopped: 0 running jobs finished meanwhile");
    });

    it('does not start in production', async () => {
      const { said, ended } = await start({ NODE_ENV: 'production' });
      await said(/connection is 'memory' and NODE_ENV is 'production'/);
      expect(await ended()).toBe(1);
    });

    it('contains the request that this test makes', () => {
      expect(readPage('README.md')).toContain(
        `curl localhost:3000/signup -H 'content-type: application/json' -d '{ "email": "ada@example.com" }'`,
      );
    });
  },
);

describe('a process that only works', { timeout: 120_000 }, () => {
  const WORKER = `
    import { Module } from '@nestjs/common';
    import { NestFactory } from '@nestjs/core';
    import { Handle, Processor, QueueModule, QueueProducer, type Job } from 'godwit';

    @Processor('work')
    class Work {
      @Handle()
      run(job: Job) {
        console.log('ran ' + job.name);
      }
    }

    @Module({
      imports: [QueueModule.forRoot({ connection: 'memory' }), QueueModule.registerQueue({ name: 'work' })],
      providers: [Work],
    })
    class AppModule {}

    const app = await NestFactory.createApplicationContext(AppModule);
    app.enableShutdownHooks(['SIGTERM']);
    process.on('SIGUSR2', () => app.get(QueueProducer).add('work', 'second', null));
    await app.get(QueueProducer).add('work', 'first', null, { delay: 100 });
  `;

  it('keeps running, as with a connection, until it gets a signal', async () => {
    const { said, signal, end } = await startProgram([...NO_IOREDIS, compiled('worker', WORKER)]);
    await said(/^ran first$/m);
    signal('SIGUSR2');
    await said(/^ran second$/m);
    expect(await end()).toBe('SIGTERM');
  });
});

describe('without any Redis', { timeout: 120_000 }, () => {
  /** As `npm run sample` does, without the compilation. */
  const start = (sample: string) =>
    startProgram([
      'tools/redis.mjs',
      '--or-memory',
      '--',
      process.execPath,
      ...TYPESCRIPT,
      ...NO_IOREDIS,
      `sample/${sample}/src/main.ts`,
    ]);
  const SAID =
    'Redis 7.0 or newer could not be started: jobs are in the memory of the process and are lost when it exits.\n';

  it('the webhooks sample runs in memory, and logs that', async () => {
    const { url, said, text, end } = await start('01-webhooks');
    await said(/Open {2}http:/);
    expect(text()).toContain(SAID);
    expect(await (await fetch(url)).text()).toContain('<title>');
    const [works] = (await (await fetch(`${url}/examples`)).json()) as { webhook: unknown }[];
    const response = await post(`${url}/webhooks`, works!.webhook);
    expect(response.status).toBe(202);
    const { id } = (await response.json()) as { id: string };
    const show = async () => (await (await fetch(`${url}/webhooks/${id}`)).json()) as { state: string };
    await until(async () => (await show()).state === 'completed', PATIENT);
    expect(await end()).toBe(0);
  });

  it('the sample that came from BullMQ runs in memory, and logs that', async () => {
    const { url, said, text, listens, end } = await start('03-from-bullmq/after');
    await said(/Nest application successfully started/);
    await listens();
    expect(text()).toContain(SAID);
    const { id } = (await (await post(`${url}/audio/transcode`, {})).json()) as { id: string };
    // It leaves nothing once it has completed.
    await until(async () => (await fetch(`${url}/audio/${id}`)).status === 404, PATIENT);
    expect(await end()).toBe(143);
  });

  it('the schedules sample runs in memory, and logs that', async () => {
    const { url, said, text, end } = await start('02-schedules');
    await said(/Open {2}http:/);
    expect(text()).toContain(SAID);
    const list = async () =>
      (await (await fetch(`${url}/schedules`)).json()) as { id: string; fired: number }[];
    expect((await list()).map(({ id }) => id)).toContain('report-new-york');
    await until(async () => (await list()).some(({ fired }) => fired > 0), PATIENT);
    expect(await end()).toBe(0);
  });
});
