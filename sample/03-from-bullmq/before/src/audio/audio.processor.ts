import { Processor, WorkerHost } from '@nestjs/bullmq';
import { Logger } from '@nestjs/common';
import { Job } from 'bullmq';
import { Transcoder } from './transcoder.js';

@Processor('audio', { concurrency: 5 })
export class AudioProcessor extends WorkerHost {
  private readonly logger = new Logger(AudioProcessor.name);

  constructor(private readonly transcoder: Transcoder) {
    super();
  }

  override async process(job: Job): Promise<unknown> {
    switch (job.name) {
      case 'transcode': {
        const { file } = job.data as { file: string };
        this.logger.debug(`Start transcoding ${file}...`);
        const made = await this.transcoder.transcode(file, (percent) => job.updateProgress(percent));
        this.logger.debug('Transcoding completed');
        return { made };
      }
      case 'concatenate': {
        const { files } = job.data as { files: string[] };
        return { made: await this.transcoder.concatenate(files) };
      }
      default:
        throw new Error(`no handler for ${job.name}`);
    }
  }
}
