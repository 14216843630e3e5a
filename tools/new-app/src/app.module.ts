import { Module } from '@nestjs/common';
import { QueueModule } from 'godwit';
import { MailModule } from './mail.module';

@Module({
  imports: [
    QueueModule.forRoot({ connection: { url: process.env.REDIS_URL! }, prefix: 'new-app' }),
    MailModule,
  ],
})
export class AppModule {}
