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
  /** Where Nest's messages go. @default nowhere */
  readonly logger?: LoggerService | false;
  /** Last changes before the module is compiled: `(module) => module.overrideProvider(Mailer).useValue(fake)`. */
  readonly override?: (module: TestingModuleBuilder) => TestingModuleBuilder;
}

export interface BootedApp {
  readonly app: INestApplication;
  /** `http://127.0.0.1:<port>`, with `http: true`. */
  readonly url: string;
  readonly get: <T>(token: Type<T> | string | symbol) => T;
  /** Also called at the end of the test. Safe twice. */
  readonly close: () => Promise<void>;
}

/**
 * Boots a Nest application from a few imports and providers, and closes it at the end of the test. Shutdown hooks for
 * signals stay off: they would stay with the process of the test.
 */
export async function bootApp(options: BootOptions): Promise<BootedApp> {
  const { http = false, logger = false, override = (same) => same } = options;
  const { imports = [], providers = [], controllers = [], exports = [] } = options;
  const builder = Test.createTestingModule({ imports, providers, controllers, exports });
  const module = await override(builder.setLogger(quiet(logger))).compile();
  // Connections are forced to close, or a page that listens to a stream of events would hold the application open.
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
