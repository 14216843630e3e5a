import { Body, Controller, Injectable, Module, Post } from '@nestjs/common';
import { Handle, Processor, QueueModule, QueueProducer, defineJob, type JobOf } from 'godwit';

export const welcome = defineJob<{ to: string }>('email', 'welcome').returns<string>();

@Injectable()
export class Mailer {
  send(to: string): string {
    return `sent to ${to}`;
  }
}

@Processor('email', { concurrency: 2 })
export class EmailProcessor {
  constructor(private readonly mailer: Mailer) {}

  @Handle(welcome)
  welcome(job: JobOf<typeof welcome>): string {
    return this.mailer.send(job.data.to);
  }
}

@Controller('signup')
export class SignupController {
  constructor(private readonly producer: QueueProducer) {}

  @Post()
  async signup(@Body() body: { email: string }): Promise<{ mail: string }> {
    return { mail: await this.producer.addAndWait(welcome, { to: body.email }) };
  }
}

@Module({
  imports: [QueueModule.registerQueue({ name: 'email' })],
  providers: [Mailer, EmailProcessor],
  controllers: [SignupController],
})
export class EmailModule {}
