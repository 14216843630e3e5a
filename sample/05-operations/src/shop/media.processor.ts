import { setTimeout as pause } from 'node:timers/promises';
import { Handle, type Job, Processor } from 'godwit';

interface Video {
  readonly video: string;
  readonly seller: string;
  readonly size: number;
}

@Processor('media', { concurrency: 2 })
export class MediaProcessor {
  @Handle('transcode')
  async transcode(job: Job<Video>) {
    for (let done = 0; done < 100; done += 10) {
      await pause(200 + Math.random() * 600, undefined, { signal: job.signal });
      await job.progress(done);
      if (done === 50) await job.log(`half of ${job.data.video} is written`);
    }
    if (Math.random() < 0.2)
      throw new RangeError(`frame ${Math.floor(Math.random() * 9_000)} cannot be decoded`);
    return { url: `https://media.example.org/${job.data.video}`, bytes: Math.round(job.data.size / 3) };
  }
}
