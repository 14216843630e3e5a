import { createHash, timingSafeEqual } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { checkServer } from '../../engine/wire/server-check.js';
import { RedisUnavailableError } from '../../errors.js';
import { messageOf, withoutEffect } from '../../errors/thrown.js';
import { QueueInspector } from '../../inspect/queue-inspector.js';
import { resolveModuleOptions, resolveQueueOptions } from '../../options/module-options.js';
import { numberOf, PORTS, stopped, urlOf, type Command, type Context } from './context.js';
import { DONE } from './failure.js';
import { cannotListen, UsageError } from './usage-error.js';

const PATH = 'queues';
const LOOPBACK = /^(localhost|127(\.\d{1,3}){3}|\[?::1\]?)$/;
const LEAST_PASSWORD = 8;

interface Login {
  readonly user: string;
  readonly password: string;
}

export const serve: Command = {
  name: 'serve',
  usage: '',
  about: 'serves the dashboard without an application, until it is stopped',
  words: [0, 0],
  options: {
    port: { type: 'string', about: 'port (default: 9395)' },
    host: { type: 'string', about: 'address to listen on; any but 127.0.0.1 needs --user' },
    user: { type: 'string', about: 'user name of the login; the password is $GODWIT_PASSWORD' },
    'read-only': { type: 'boolean', about: 'no page can change anything' },
    title: { type: 'string', about: 'heading of the pages (default: Queues)' },
    environment: { type: 'string', about: 'a word next to the heading, e.g. production' },
  },
  async run(context) {
    const { values, print, signal } = context;
    const login = loginOf(values['user'] as string | undefined);
    const host = (values['host'] as string | undefined) ?? '127.0.0.1';
    if (login === undefined && !LOOPBACK.test(host))
      throw new UsageError(`--host ${host} needs --user: everyone who reaches it could change all jobs`, '');
    const given = numberOf(context, 'port', 9395, PORTS);
    const dashboard = await dashboardOf(context, login);
    const server = createServer((request, response) => {
      if (isRefused(request, response, login)) return;
      void dashboard.handle(request, response);
    });
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen(given, host, resolve);
    }).catch(cannotListen);
    const { port } = server.address() as AddressInfo;
    const url = urlOf(host, port, `${PATH}/`);
    if (print.isJson) print.jsonLine({ url });
    else print.line(url);
    if (dashboard.fault !== null)
      print.line(`${dashboard.fault}; the pages say so, and go on when Redis answers`);
    await stopped(signal);
    await dashboard.close();
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
    return DONE;
  },
};

/** @throws {UsageError} if the name has no valid password. */
function loginOf(user: string | undefined): Login | undefined {
  if (user === undefined) return undefined;
  const password = process.env['GODWIT_PASSWORD'] ?? '';
  if (password.length < LEAST_PASSWORD)
    throw new UsageError(
      `--user needs $GODWIT_PASSWORD of at least ${LEAST_PASSWORD} characters; an argument could be read by others`,
      '',
    );
  if (user === '' || user.includes(':')) throw new UsageError('--user must be a name without a colon', '');
  return { user, password };
}

/** The server of the module, for all queues of the prefix. It is loaded only by this command. */
async function dashboardOf({ inspector, values, prefix }: Context, login: Login | undefined) {
  const [{ DashboardServer }, { DashboardPage }, { Redactor }, { checkDashboardOptions }, { QueueEvents }] =
    await Promise.all([
      import('../dashboard/server.js'),
      import('../dashboard/page.js'),
      import('../dashboard/redaction.js'),
      import('../dashboard/options.js'),
      import('../../events/queue-events.js'),
    ]);
  const options = asArguments(() =>
    checkDashboardOptions({
      path: PATH,
      queues: 'all',
      readOnly: values['read-only'] === true,
      authorize: () => ({ allow: true, actor: login?.user ?? 'godwit serve' }),
      ...(values['title'] !== undefined && { title: values['title'] }),
      ...(values['environment'] !== undefined && { environment: values['environment'] }),
    }),
  );
  const { engine } = inspector.producer;
  const known = new Set<string>();
  const events = new QueueEvents(
    () => engine,
    () => [...known],
    () => undefined,
  );
  const settings = resolveModuleOptions({ prefix });
  const warnings = new ServerWarnings(inspector);
  const fault = await warnings.read();
  const parts = {
    engine,
    // The dashboard records what is done on it. Changes through the inspector of the command would be recorded twice.
    inspector: new QueueInspector(engine, () => []),
    events,
    handleOf: (name: string) => {
      known.add(name);
      return inspector.producer.queue(name);
    },
    shows: () => true,
    queues: async () => (await engine.processes.queues()).toSorted(),
    optionsOf: (name: string) => ({ ...resolveQueueOptions({ name }, settings), isRegistered: false }),
    warnings: () => warnings.latest(),
    redactor: new Redactor(options.redact),
    links: { of: () => [] },
    definitions: options.definitions,
    maxOldestMs: options.maxOldestMs,
  };
  const server = new DashboardServer(options, parts, new DashboardPage(options), () => '');
  return {
    /** Why Redis does not answer; null if it does. */
    fault,
    handle: (request: IncomingMessage, response: ServerResponse) => {
      if (request.url === '/') {
        response.writeHead(302, { location: `${PATH}/` }).end();
        return Promise.resolve();
      }
      return server.handle(request as Parameters<typeof server.handle>[0], response as never);
    },
    close: async () => {
      server.close();
      await events.close();
    },
  };
}

/** The checked options. A fault names the argument, not the option of the module. */
function asArguments<T>(check: () => T): T {
  try {
    return check();
  } catch (error) {
    throw new UsageError(messageOf(error).replace('QueueDashboardModule.forRoot().', '--'), '');
  }
}

/** Warns about the settings of Redis. While Redis is unreachable, the pages show that, and this tries again. */
class ServerWarnings {
  private warnings: ReturnType<typeof checkServer> | undefined;
  private reading: Promise<string | null> | undefined;

  constructor(private readonly inspector: Context['inspector']) {}

  /** Resolves with the error of Redis, or null. */
  read(): Promise<string | null> {
    this.reading ??= this.tryRead().finally(() => (this.reading = undefined));
    return this.reading;
  }

  latest(): ReturnType<typeof checkServer> {
    if (this.warnings === undefined) void this.read();
    return this.warnings ?? [];
  }

  private async tryRead(): Promise<string | null> {
    try {
      const info = await this.inspector.producer.engine.admin.serverInfo('godwit-serve');
      this.warnings = checkServer(info ?? '', 0);
      return null;
    } catch (error) {
      return error instanceof RedisUnavailableError ? withoutEffect(error) : messageOf(error);
    }
  }
}

/**
 * Without a login, only this machine has access. Other host names are refused: a website could point its own name at this
 * machine and read the responses (DNS rebinding).
 */
function isRefused(request: IncomingMessage, response: ServerResponse, login: Login | undefined): boolean {
  const refuse = (status: number, message: string, headers: Record<string, string> = {}) => {
    response.writeHead(status, { 'content-type': 'text/plain; charset=utf-8', ...headers });
    response.end(`${message}\n`);
    return true;
  };
  if (login === undefined) {
    const host = (request.headers.host ?? '').replace(/:\d+$/, '');
    return !LOOPBACK.test(host) && refuse(403, 'open it as http://localhost, or start it with --user');
  }
  const given = /^Basic +([A-Za-z0-9+/=]+)$/i.exec(request.headers.authorization ?? '')?.[1] ?? '';
  const hash = (text: string) => createHash('sha256').update(text).digest();
  const expected = hash(`${login.user}:${login.password}`);
  if (timingSafeEqual(hash(Buffer.from(given, 'base64').toString()), expected)) return false;
  return refuse(401, 'the login is missing or wrong', {
    'www-authenticate': 'Basic realm="godwit", charset="UTF-8"',
  });
}
