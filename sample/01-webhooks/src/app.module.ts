import { Module, type MiddlewareConsumer, type NestModule } from '@nestjs/common';
import { QueueModule } from 'godwit';
import { HostMiddleware } from './host.middleware.js';
import { PageModule } from './page/page.module.js';
import { ReceiverModule } from './receiver/receiver.module.js';
import { Settings, SettingsModule } from './settings.js';
import { WebhooksModule } from './webhooks/webhooks.module.js';

@Module({
  imports: [
    SettingsModule,
    QueueModule.forRootAsync({
      inject: [Settings],
      useFactory: ({ connection, prefix }: Settings) => ({ connection, prefix }),
    }),
    WebhooksModule,
    // Only for the demonstration: a receiver, and a page that shows the deliveries. The rest works without them.
    ReceiverModule,
    PageModule,
  ],
})
export class AppModule implements NestModule {
  configure(consumer: MiddlewareConsumer): void {
    consumer.apply(HostMiddleware).forRoutes('{*path}');
  }
}
