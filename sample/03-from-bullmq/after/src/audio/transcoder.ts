import { Injectable } from '@nestjs/common';

/** The work itself, without queues. This file is the same before and after. */
@Injectable()
export class Transcoder {
  async transcode(file: string, onProgress: (percent: number) => Promise<unknown>): Promise<string> {
    for (const percent of [25, 50, 75, 100]) await onProgress(percent);
    return file.replace(/\.\w+$/, '.ogg');
  }

  async concatenate(files: readonly string[]): Promise<string> {
    return files.join('+');
  }
}
