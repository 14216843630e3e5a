import { Body, Controller, Inject, Injectable, Module, Post, Scope, UseGuards } from '@nestjs/common';
import type { CanActivate, ExecutionContext } from '@nestjs/common';
import {
  Handle,
  JOB_REF,
  JobData,
  Processor,
  QueueExecutionContext,
  QueueModule,
  QueueProducer,
  defineJob,
  type Job,
} from 'godwit';

export const welcome = defineJob<{ to: string }>('email', 'welcome').returns<string>();

@Injectable()
export class Mailer {
  send(to: string): string {
    return `sent to ${to}`;
  }
}

@Injectable()
export class FirstAttempts implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    return QueueExecutionContext.of(context).attempt < 3;
  }
}

@Processor('email', { concurrency: 2 })
export class EmailProcessor {
  constructor(private readonly mailer: Mailer) {}

  @Handle(welcome)
  @UseGuards(FirstAttempts)
  welcome(@JobData() data: { to: string }): string {
    return this.mailer.send(data.to);
  }
}

@Processor('audit', { scope: Scope.REQUEST })
export class AuditProcessor {
  constructor(@Inject(JOB_REF) private readonly job: Job<{ to: string }>) {}

  @Handle()
  note(): string {
    return `noted ${this.job.data.to}`;
  }
}

@Controller('signup')
export class SignupController {
  constructor(private readonly producer: QueueProducer) {}

  @Post()
  async signup(@Body() body: { email: string }): Promise<{ mail: string; note: unknown }> {
    const [mail, note] = await Promise.all([
      this.producer.addAndWait(welcome, { to: body.email }),
      this.producer.addAndWait('audit', 'signup', { to: body.email }),
    ]);
    return { mail, note };
  }
}

@Module({
  imports: [QueueModule.registerQueue({ name: 'email' }, { name: 'audit' })],
  providers: [Mailer, EmailProcessor, AuditProcessor],
  controllers: [SignupController],
})
export class EmailModule {}
