import { QueueProducer } from 'godwit';
import { bootApp } from '../../../../test/support/app.js';
import type { TestRedis } from '../../../../test/support/redis.js';
import { until } from '../../../../test/support/wait.js';
import { AppModule } from '../../src/app.module.js';
import { Journal } from '../../src/journal.js';
import { charge } from '../../src/orders/orders.js';
import { Settings } from '../../src/settings.js';

/** The whole sample, as `main.ts` starts it, without its clock. */
export interface Sample {
  /** The lines written, `who: what`. */
  readonly lines: readonly string[];
  place(order: string, cents: number): Promise<unknown>;
  /** Resolves with the line. */
  written(line: string): Promise<unknown>;
}

export async function startSample(redis: TestRedis): Promise<Sample> {
  const settings = new Settings({ REDIS_URL: redis.url, QUEUE_PREFIX: redis.prefix });
  const lines: string[] = [];
  const journal: Journal = {
    write: (who, what) => void lines.push(`${who}: ${what.replace(/\d+ ms/, 'N ms')}`),
  };
  const { get } = await bootApp({
    imports: [AppModule],
    override: (module) =>
      module.overrideProvider(Settings).useValue(settings).overrideProvider(Journal).useValue(journal),
  });
  return {
    lines,
    place: (order, cents) => get(QueueProducer).add(charge, { order, cents }, { id: `charge-${order}` }),
    written: (line) =>
      until(() => lines.includes(line), { timeout: 15_000, what: () => `${line}, got ${lines.join('; ')}` }),
  };
}
