import { Controller, Get, NotFoundException, Param, Post } from '@nestjs/common';
import { InjectQueue, type Queue } from 'godwit';

@Controller('audio')
export class AudioController {
  constructor(@InjectQueue('audio') private readonly audioQueue: Queue) {}

  @Post('transcode')
  async transcode() {
    const job = await this.audioQueue.add('transcode', { file: 'audio.mp3' });
    return { id: job.id };
  }

  @Post('concatenate')
  async concatenate() {
    const job = await this.audioQueue.add('concatenate', { files: ['a.mp3', 'b.mp3'] }, { delay: 200 });
    return { id: job.id };
  }

  @Get(':id')
  async state(@Param('id') id: string) {
    const job = await this.audioQueue.get(id);
    if (!job) throw new NotFoundException();
    return { id: job.id, name: job.name, state: job.state, progress: job.progress };
  }
}
