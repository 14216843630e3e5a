import { Global, Module } from '@nestjs/common';
import { QueueModule } from 'godwit';
import { BridgesModule } from './bridges/bridges.module.js';
import { OrdersModule } from './orders/orders.module.js';
import { Settings } from './settings.js';

@Global()
@Module({ providers: [{ provide: Settings, useFactory: () => new Settings() }], exports: [Settings] })
class SettingsModule {}

@Module({
  imports: [
    SettingsModule,
    QueueModule.forRootAsync({
      inject: [Settings],
      useFactory: ({ connection, prefix }: Settings) => ({ connection, prefix }),
    }),
    BridgesModule,
    OrdersModule,
  ],
})
export class AppModule {}
