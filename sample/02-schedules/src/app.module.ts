import { Global, Module } from '@nestjs/common';
import { QueueModule } from 'godwit';
import { ChoresModule } from './chores/chores.module.js';
import { PageModule } from './page/page.module.js';
import { SchedulesModule } from './schedules/schedules.module.js';
import { Settings } from './settings.js';

@Global()
@Module({ providers: [{ provide: Settings, useFactory: () => new Settings() }], exports: [Settings] })
class SettingsModule {}

@Module({
  imports: [
    SettingsModule,
    QueueModule.forRootAsync({
      inject: [Settings],
      useFactory: ({ connection, prefix }: Settings) => ({
        connection,
        prefix,
        // A longer run is aborted by its signal, and runs again with the next start.
        shutdown: { timeout: '1s' },
      }),
    }),
    ChoresModule,
    SchedulesModule,
    PageModule,
  ],
})
export class AppModule {}
