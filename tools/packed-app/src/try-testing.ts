// Does the same as a test of a user, with the same application and without Redis.
import assert from 'node:assert/strict';
import { Test } from '@nestjs/testing';
import { QueueTesting, QueueTestingModule } from 'godwit/testing';
import { EmailModule, EmailProcessor } from './email.module.js';

export async function tryTesting(): Promise<void> {
  const module = await Test.createTestingModule({
    imports: [QueueTestingModule.forRoot(), EmailModule],
  }).compile();
  await module.init();
  const testing = module.get(QueueTesting);
  assert.equal(
    await testing.run(EmailProcessor, 'welcome', { to: 'ada@example.org' }),
    'sent to ada@example.org',
  );
  await module.close();
}
