import { Module } from '@nestjs/common';
import { EmailProcessor } from './shop/email.processor.js';
import { MediaProcessor } from './shop/media.processor.js';
import { shopQueues } from './shop/queues.js';
import { ReportProcessor } from './shop/report.processor.js';

export const processors = [EmailProcessor, MediaProcessor, ReportProcessor];

/** A process that only runs jobs. */
@Module({ imports: shopQueues('worker'), providers: processors })
export class WorkerModule {}
