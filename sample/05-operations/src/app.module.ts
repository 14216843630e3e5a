import { Global, Module } from '@nestjs/common';
import { QueueDashboardModule } from 'godwit/dashboard';
import { Load } from './load.js';
import { OpsGuard } from './ops.guard.js';
import { Settings } from './settings.js';
import { shopQueues } from './shop/queues.js';
import { processors } from './worker.module.js';

@Global()
@Module({ providers: [{ provide: Settings, useFactory: () => new Settings() }], exports: [Settings] })
class SettingsModule {}

const { isInMemory } = new Settings();

/** The web process: it adds jobs, and has the dashboard. */
@Module({
  imports: [
    SettingsModule,
    ...shopQueues(isInMemory ? 'both' : 'producer'),
    QueueDashboardModule.forRoot({
      path: 'queues',
      guards: [OpsGuard],
      title: 'Shop queues',
      environment: 'sample',
      // What is listed here never leaves the server, beside fields such as password and token.
      redact: { paths: ['customer.email'] },
    }),
  ],
  providers: [Load, ...(isInMemory ? processors : [])],
})
export class AppModule {}
