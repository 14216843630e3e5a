import { NestFactory } from '@nestjs/core';
import { QueueInspector } from 'godwit';
import { AppModule } from './app.module';
import { Signup } from './mail.module';

async function bootstrap() {
  const app = await NestFactory.create(AppModule);
  await app.listen(0, '127.0.0.1');
  const answer = await app.get(Signup).signUp('Ada');
  // The thread that renews the leases also registers the process. If it cannot, the log has said why.
  const inspector = app.get(QueueInspector);
  while ((await inspector.workers()).length === 0) await new Promise((resolve) => setTimeout(resolve, 20));
  await app.close();
  console.log(`the job answered: ${String(answer)}`);
}
void bootstrap();
