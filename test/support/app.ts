import type { AddressInfo } from 'node:net';
import type { INestApplication, LoggerService, ModuleMetadata, Type } from '@nestjs/common';
import { Test, type TestingModuleBuilder } from '@nestjs/testing';
import { atEnd } from './cleanup.js';

export interface BootOptions extends Pick<
  ModuleMetadata,
  'imports' | 'providers' | 'controllers' | 'exports'
> {
  /** Listen on a free port of 127.0.0.1; `url` then has the address. @default false */
  readonly http?: boolean;
  /** The logger of the application. @default no logging */
  readonly logger?: LoggerService | false;
  /** Changes the module before it is compiled: `(module) => module.overrideProvider(Mailer).useValue(fake)`. */
  readonly override?: (module: TestingModuleBuilder) => TestingModuleBuilder;
}

export interface BootedApp {
  readonly app: INestApplication;
  /** `http://127.0.0.1:<port>`, with `http: true`. */
  readonly url: string;
  readonly get: <T>(token: Type<T> | string | symbol) => T;
  /** Also called at the end of the test. May be called twice. */
  readonly close: () => Promise<void>;
}

/**
 * Starts a Nest application from imports and providers, and closes it at the end of the test. Shutdown hooks for
 * signals stay off, because they would outlive the application in the process of the test.
 */
export async function bootApp(options: BootOptions): Promise<BootedApp> {
  const { http = false, logger = false, override = (same) => same } = options;
  const { imports = [], providers = [], controllers = [], exports = [] } = options;
  const builder = Test.createTestingModule({ imports, providers, controllers, exports });
  const module = await override(builder.setLogger(quiet(logger))).compile();
  // Force connections to close: a page that reads a stream of events would keep the application open.
  const app = module.createNestApplication({ logger: quiet(logger), forceCloseConnections: true });
  let closing: Promise<void> | undefined;
  const close = () => (closing ??= app.close());
  atEnd(close);
  if (http) await app.listen(0, '127.0.0.1');
  else await app.init();
  return {
    app,
    url: http ? `http://127.0.0.1:${(app.getHttpServer().address() as AddressInfo).port}` : '',
    get: (token) => app.get(token, { strict: false }),
    close,
  };
}

const nothing = () => undefined;
const SILENCE = {
  log: nothing,
  warn: nothing,
  error: nothing,
  debug: nothing,
  verbose: nothing,
  fatal: nothing,
};

function quiet(logger: LoggerService | false): LoggerService {
  return logger || SILENCE;
}
