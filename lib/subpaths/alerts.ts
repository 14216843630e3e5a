import { checkAlertsOptions, QueueAlerts, type QueueAlertsOptions } from './alerts/queue-alerts.js';
import { createInspector, type InspectorOptions } from './inspector.js';

/** Options of `createAlerts`. */
export interface CreateAlertsOptions
  extends Pick<InspectorOptions, 'connection' | 'prefix'>, QueueAlertsOptions {}

/**
 * Alerts in a program without Nest. They are evaluated until `close`. Without that call, the process does not exit by itself.
 *
 * @throws {InvalidOptionError}
 * @example
 * const alerts = createAlerts({
 *   connection: process.env.REDIS_URL!,
 *   prefix: 'shop',
 *   rules: [{ rule: 'failureRatio', limit: 0.2 }],
 *   notify: ({ text }) => console.error(text),
 * });
 * process.once('SIGTERM', () => alerts.close());
 */
export function createAlerts({ connection, prefix, ...options }: CreateAlertsOptions): StandaloneAlerts {
  const checked = checkAlertsOptions(options, 'createAlerts()');
  const inspector = createInspector({
    ...(connection !== undefined && { connection }),
    ...(prefix !== undefined && { prefix }),
  });
  const alerts = new QueueAlerts({ engine: inspector.producer.engine, inspector }, checked);
  alerts.start();
  return {
    firing: () => alerts.firing(),
    close: async () => {
      await alerts.close();
      await inspector.close();
    },
  };
}

/** The result of `createAlerts`. */
export interface StandaloneAlerts {
  /**
   * The alerts that fire now, according to the last evaluation of any process.
   *
   * @throws {RedisUnavailableError | RedisRefusedError}
   */
  firing(): ReturnType<QueueAlerts['firing']>;
  /** Ends the evaluation and the connection. Never rejects. */
  close(): Promise<void>;
}

export { QueueAlerts } from './alerts/queue-alerts.js';
export type { Notify, QueueAlertsOptions } from './alerts/queue-alerts.js';
export { QueueAlertsModule } from './alerts/queue-alerts.module.js';
export type { QueueAlertsAsyncOptions } from './alerts/queue-alerts.module.js';
export { webhook } from './alerts/webhook.js';
export type { WebhookOptions } from './alerts/webhook.js';
export type { Alert } from './alerts/alert-state.js';
export type { AlertRule, AlertRuleKind, AlertUnit } from './alerts/rules.js';
