import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Provider } from '@nestjs/common';
import { DiscoveryService, MetadataScanner, ModulesContainer } from '@nestjs/core';
import { NestConflictError, type NestCopy } from '../../errors.js';

/**
 * The part of Nest that discovery needs. Nest's own `DiscoveryModule` is not imported: with another copy of `@nestjs/core` than that of
 * the application it could not be resolved, and the error would only say that `ModulesContainer` is not available in it.
 */
export const discoveryProviders: Provider[] = [
  MetadataScanner,
  {
    provide: DiscoveryService,
    inject: [{ token: ModulesContainer, optional: true }],
    useFactory: (modules: ModulesContainer | undefined) => {
      if (modules === undefined) throw new NestConflictError(callersCopy(new Error().stack), ownCopy());
      return new DiscoveryService(modules);
    },
  },
];

/** The copy that this library imports. */
function ownCopy(): NestCopy {
  const path = dirname(createRequire(__filename).resolve('@nestjs/core/package.json'));
  return { version: versionAt(path), path };
}

/** The copy that called. None of its providers is known here, but its injector is in the stack. */
function callersCopy(stack = ''): NestCopy | undefined {
  const frame = /^ +at (?:.*? \()?(.*[\\/]@nestjs[\\/]core)[\\/]/m.exec(stack);
  if (frame === null) return undefined;
  const path = frame[1]!.startsWith('file:') ? fileURLToPath(frame[1]!) : frame[1]!;
  return { version: versionAt(path), path };
}

function versionAt(path: string): string {
  try {
    return (JSON.parse(readFileSync(join(path, 'package.json'), 'utf8')) as { version: string }).version;
  } catch {
    return 'unknown';
  }
}
