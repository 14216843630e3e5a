import { Test } from '@nestjs/testing';
import { QueueRuntime } from 'godwit';
import { QueueTesting, QueueTestingModule } from 'godwit/testing';
import { MailModule, MailProcessor, Signup } from './mail.module';

describe('mail', () => {
  it('runs a handler', async () => {
    const module = await Test.createTestingModule({
      imports: [QueueTestingModule.forRoot(), MailModule],
    }).compile();
    await module.init();
    const testing = module.get(QueueTesting);
    expect(await testing.run(MailProcessor, 'welcome', { name: 'Ada' })).toBe('hello Ada');
    expect(await module.get(Signup).signUp('Ada')).toBe('hello Ada');
    expect(module.get(QueueRuntime)).toBeInstanceOf(QueueRuntime);
    await module.close();
  });
});
