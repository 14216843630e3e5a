import { readFileSync } from 'node:fs';
import { Injectable } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { expect, it, vi } from 'vitest';
import { Handle } from '#lib/decorators/handle.decorator.js';
import { Processor } from '#lib/decorators/processor.decorator.js';
import type { Job } from '#lib/job/job.js';
import { QueueModule } from '#lib/module/queue.module.js';
import { QueueTesting, QueueTestingModule } from '#lib/subpaths/testing.js';

@Injectable()
class Mailer {
  async send(_to: string): Promise<string> {
    throw new Error('no mail may leave a test');
  }
}

@Processor('email')
class EmailProcessor {
  constructor(private readonly mailer: Mailer) {}

  @Handle('welcome')
  welcome(job: Job<{ to: string }>) {
    return this.mailer.send(job.data.to);
  }
}

it('welcomes a new user', async () => {
  const mailer = { send: vi.fn<(to: string) => void>() };
  const module = await Test.createTestingModule({
    imports: [QueueTestingModule.forRoot(), QueueModule.registerQueue({ name: 'email' })],
    providers: [EmailProcessor, { provide: Mailer, useValue: mailer }],
  }).compile();
  await module.init();

  await module.get(QueueTesting).run(EmailProcessor, 'welcome', { to: 'ada@example.com' });

  expect(mailer.send).toHaveBeenCalledWith('ada@example.com');
});

it('takes a newcomer fewer than 15 lines, empty ones included', () => {
  const lines = readFileSync(new URL(import.meta.url), 'utf8').split('\n');
  const first = lines.findIndex((line) => line.startsWith("it('welcomes a new user'"));
  const last = lines.findIndex((line, i) => i > first && line === '});');
  expect(lines.slice(first, last + 1).join('\n')).toContain('.run(EmailProcessor');
  expect(last - first + 1).toBeLessThan(15);
});

it('fails if the handler does not do it', async () => {
  const module = await Test.createTestingModule({
    imports: [QueueTestingModule.forRoot(), QueueModule.registerQueue({ name: 'email' })],
    providers: [EmailProcessor, Mailer],
  }).compile();
  await module.init();
  const run = module.get(QueueTesting).run(EmailProcessor, 'welcome', { to: 'ada@example.com' });
  await expect(run).rejects.toThrow('no mail may leave a test');
});
