import { Injectable, Module } from '@nestjs/common';
import { Handle, InjectQueue, Processor, QueueModule, type Job, type Queue } from 'godwit';

@Injectable()
export class Greeter {
  greet(name: string) {
    return `hello ${name}`;
  }
}

@Injectable()
export class Signup {
  constructor(@InjectQueue('mail') private readonly mail: Queue) {}

  signUp(name: string): Promise<string> {
    return this.mail.addAndWait<string>('welcome', { name }, { waitTimeout: '20s' });
  }
}

@Processor('mail')
export class MailProcessor {
  // Injected only by its type: bundlers must keep the metadata of constructors.
  constructor(private readonly greeter: Greeter) {}

  @Handle('welcome')
  welcome(job: Job<{ name: string }>) {
    return this.greeter.greet(job.data.name);
  }
}

@Module({
  imports: [QueueModule.registerQueue({ name: 'mail' })],
  providers: [Greeter, Signup, MailProcessor],
})
export class MailModule {}
