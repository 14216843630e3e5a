// The smallest application of a user: installed from the packed tarball, compiled, run once against a real Redis.
import assert from 'node:assert/strict';
import { Injectable, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { Handle, Processor, QueueModule, QueueProducer, type Job } from 'godwit';

@Injectable()
class Mailer {
  send(to: string): string {
    return `sent to ${to}`;
  }
}

@Processor('email', { concurrency: 2 })
class EmailProcessor {
  constructor(private readonly mailer: Mailer) {}

  @Handle('welcome')
  welcome(job: Job<{ to: string }>): string {
    return this.mailer.send(job.data.to);
  }
}

@Module({
  imports: [
    QueueModule.forRoot({ connection: { url: process.env['REDIS_URL']! }, prefix: 'packed' }),
    QueueModule.registerQueue({ name: 'email' }),
  ],
  providers: [Mailer, EmailProcessor],
})
class AppModule {}

const app = await NestFactory.createApplicationContext(AppModule, { logger: ['error', 'fatal'] });
const result: unknown = await app
  .get(QueueProducer)
  .addAndWait('email', 'welcome', { to: 'ada@example.org' });
await app.close();

assert.equal(result, 'sent to ada@example.org');
console.log('the job went through');
