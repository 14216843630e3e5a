// A process with the SDK of OpenTelemetry, which sends its spans to a receiver: `producer` adds jobs inside a span of a request, `worker` runs them.
import 'reflect-metadata';
import { once } from 'node:events';
import { trace } from '@opentelemetry/api';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { NodeTracerProvider, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-node';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { QueueModule, QueueRuntime } from 'godwit';
import { otel } from 'godwit/otel';
import { createProducer } from 'godwit/producer';

const { role, connection, prefix, url } = JSON.parse(process.argv[2]);
const exporter = new OTLPTraceExporter({ url });
const provider = new NodeTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] });
provider.register();
const tracer = trace.getTracer('application');

if (role === 'producer') {
  const producer = createProducer({ connection, prefix, telemetry: otel() });
  await tracer.startActiveSpan('GET /signup', async (span) => {
    await producer.add('work', 'welcome', { to: 'ada' }, { id: 'one' });
    await producer.addBulk('work', [
      { name: 'digest', data: 1 },
      { name: 'digest', data: 2 },
    ]);
    span.end();
  });
  await producer.close();
  await provider.shutdown();
} else {
  class App {}
  const root = QueueModule.forRoot({ connection, prefix, telemetry: otel(), log: false });
  Module({ imports: [root, QueueModule.registerQueue({ name: 'work' })] })(App);
  const app = await NestFactory.createApplicationContext(App, { logger: false });
  await app.get(QueueRuntime).work('work', {
    welcome: () => tracer.startActiveSpan('send mail', async (span) => span.end()),
    digest: () => undefined,
  });
  process.send('ready');
  await once(process, 'message');
  await app.close();
  await provider.shutdown();
  process.disconnect();
}
