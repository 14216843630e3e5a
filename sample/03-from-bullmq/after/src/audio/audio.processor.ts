import { Logger } from '@nestjs/common';
import { Handle, type Job, Processor } from 'godwit';
import { Transcoder } from './transcoder.js';

@Processor('audio', { concurrency: 5 })
export class AudioProcessor {
  private readonly logger = new Logger(AudioProcessor.name);

  constructor(private readonly transcoder: Transcoder) {}

  @Handle('transcode')
  async transcode(job: Job<{ file: string }>): Promise<unknown> {
    const { file } = job.data;
    this.logger.debug(`Start transcoding ${file}...`);
    const made = await this.transcoder.transcode(file, (percent) => job.progress(percent));
    this.logger.debug('Transcoding completed');
    return { made };
  }

  @Handle('concatenate')
  async concatenate(job: Job<{ files: string[] }>): Promise<unknown> {
    return { made: await this.transcoder.concatenate(job.data.files) };
  }
}
