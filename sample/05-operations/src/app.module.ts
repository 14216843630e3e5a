import { Global, Module } from '@nestjs/common';
import { QueueDashboardModule } from 'godwit/dashboard';
import { QueueMetricsModule } from 'godwit/prometheus';
import { Load } from './load.js';
import { OpsGuard } from './ops.guard.js';
import { Settings } from './settings.js';
import { shopQueues } from './shop/queues.js';
import { processors } from './worker.module.js';

@Global()
@Module({ providers: [{ provide: Settings, useFactory: () => new Settings() }], exports: [Settings] })
class SettingsModule {}

const { isInMemory } = new Settings();

/** The web process: it adds jobs, and serves the dashboard and the metrics of all queues. */
@Module({
  imports: [
    SettingsModule,
    ...shopQueues(isInMemory ? 'both' : 'producer'),
    QueueDashboardModule.forRoot({
      path: 'queues',
      guards: [OpsGuard],
      // The page Actions shows the actor. In your application, it is the person who is logged in.
      authorize: () => ({ allow: 'admin', actor: 'ops' }),
      title: 'Shop queues',
      environment: 'sample',
      // Values of these fields are never sent to the browser, in addition to fields such as password and token.
      redact: { paths: ['customer.email'] },
    }),
    QueueMetricsModule.forRoot({ path: 'metrics', guards: [OpsGuard] }),
  ],
  providers: [Load, ...(isInMemory ? processors : [])],
})
export class AppModule {}
