import { NestFactory } from '@nestjs/core';
import { AppModule } from './app.module';
import { Signup } from './mail.module';

async function bootstrap() {
  const app = await NestFactory.create(AppModule);
  await app.listen(0, '127.0.0.1');
  const answer = await app.get(Signup).signUp('Ada');
  await app.close();
  console.log(`the job answered: ${String(answer)}`);
}
void bootstrap();
