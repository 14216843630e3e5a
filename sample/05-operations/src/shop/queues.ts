import { QueueModule } from 'godwit';
import { Settings } from '../settings.js';

/** The web process and the workers register the same queues. */
export function shopQueues(role: 'producer' | 'worker' | 'both') {
  const { connection, prefix } = new Settings();
  return [
    QueueModule.forRoot({ connection, prefix, role, history: true, log: { failures: false, deaths: false } }),
    QueueModule.registerQueue(
      { name: 'emails', defaults: { attempts: 4, backoff: { type: 'exponential', delay: '2s' } } },
      {
        name: 'media',
        limits: { rate: { max: 40, per: '1m' } },
        // A seller with many videos does not keep those of the others waiting.
        groups: { by: 'seller', concurrency: 1 },
        defaults: { attempts: 2, timeout: '30s', retention: '1h' },
      },
      { name: 'reports', defaults: { retention: '1d' } },
    ),
  ];
}
