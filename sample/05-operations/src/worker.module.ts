import { Module } from '@nestjs/common';
import { QueueProbesModule } from 'godwit/probes';
import { QueueMetricsModule } from 'godwit/prometheus';
import { Settings } from './settings.js';
import { EmailProcessor } from './shop/email.processor.js';
import { MediaProcessor } from './shop/media.processor.js';
import { shopQueues } from './shop/queues.js';
import { ReportProcessor } from './shop/report.processor.js';

export const processors = [EmailProcessor, MediaProcessor, ReportProcessor];

/** A process that only runs jobs, with a server for probes and for the metrics of its work. */
@Module({
  imports: [
    ...shopQueues('worker'),
    // The web process reports the state of all queues.
    QueueMetricsModule.forRoot({ path: false, global: false }),
    QueueProbesModule.forRoot({ port: new Settings().probesPort, host: '127.0.0.1' }),
  ],
  providers: processors,
})
export class WorkerModule {}
