import { setTimeout as pause } from 'node:timers/promises';
import { NestFactory } from '@nestjs/core';
import { QueueProducer } from 'godwit';
import { AppModule } from './app.module.js';
import { charge } from './orders/orders.js';

const app = await NestFactory.createApplicationContext(AppModule, { logger: ['warn', 'error', 'fatal'] });
app.enableShutdownHooks([], { useProcessExit: true });
const producer = app.get(QueueProducer);

console.log('\n  An order every two seconds; every fourth is declined. Ctrl-C ends it.\n');
for (let placed = 1; ; placed++) {
  await pause(2_000);
  const order = `${Date.now()}`;
  await producer.add(charge, { order, cents: placed % 4 === 0 ? 99_000 : 990 }, { id: `charge-${order}` });
}
