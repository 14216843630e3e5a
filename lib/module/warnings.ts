import type { Log } from '../contract/log.js';
import { addressOf, DEFAULT_CONNECTION, isMemory, type ConnectionOption } from '../options/connection.js';
import type { QueueEngine } from '../contract/engine.js';

/** `createApplicationContext` is up before its caller can enable the hooks, so the look comes a little later. */
const LOOK_AFTER_MS = 3000;

/**
 * Warns when nothing listens to SIGTERM: then a deployment ends the process in the middle of its jobs, and they wait
 * for their lease to end before they run again.
 *
 * @returns takes the warning back if it has not been given yet.
 */
export function warnWithoutShutdownHooks(logger: Log): () => void {
  const timer = setTimeout(() => {
    if (process.listenerCount('SIGTERM') > 0) return;
    logger.warn(
      'nothing listens to SIGTERM, so running jobs are cut off when the process is told to end; ' +
        'call app.enableShutdownHooks() after creating the application',
    );
  }, LOOK_AFTER_MS);
  timer.unref();
  return () => clearTimeout(timer);
}

/** Which Redis each configuration uses, so that a connection that was left out or is incomplete is seen. */
export function logAddresses(
  configs: readonly { readonly key: string; readonly connection: ConnectionOption }[],
  logger: Log,
): void {
  for (const { key, connection } of configs) {
    if (isMemory(connection)) continue;
    const place = key === '' ? 'forRoot()' : `forRoot('${key}')`;
    const address = addressOf(connection) ?? 'the address of the client that its function makes';
    const isDefault = connection === DEFAULT_CONNECTION;
    logger.log(`Redis of ${place}: ${address}${isDefault ? ', the default' : ''}`);
  }
}

/** One line when a connection is lost and one when it is back. */
export function logLinks(engine: Pick<QueueEngine, 'onLink'>, logger: Log): () => void {
  const down = new Set<string>();
  return engine.onLink(({ role, state, error, config }) => {
    const connection = `the ${role} connection to Redis${config ? ` of forRoot('${config}')` : ''}`;
    if (state === 'up') {
      if (down.delete(connection)) logger.log(`${connection} is back`);
    } else if (!down.has(connection)) {
      down.add(connection);
      logger.warn(`${connection} is lost${error ? ` (${error.message})` : ''}; reconnecting`);
    }
  });
}
