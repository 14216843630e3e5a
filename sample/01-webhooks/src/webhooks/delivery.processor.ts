import { Handle, Processor, type JobOf } from 'godwit';
import { Settings } from '../settings.js';
import { sign } from './signature.js';
import { judge } from './verdict.js';
import { delivery } from './webhook.js';
import { WebhookSender } from './webhook-sender.js';

@Processor(delivery, { concurrency: 20 })
export class DeliveryProcessor {
  constructor(
    private readonly sender: WebhookSender,
    private readonly settings: Settings,
  ) {}

  /** Makes one attempt. The queue decides whether and when to retry; see `webhooks.module.ts`. */
  @Handle(delivery)
  async deliver({ id, createdAt, data, signal }: JobOf<typeof delivery>): Promise<{ status: number }> {
    const body = JSON.stringify({ type: data.event, timestamp: createdAt, data: data.body });
    const headers = { ...sign(this.settings.secret, id, body) };
    const answer = await this.sender.post({ url: data.url, body, headers }, signal);
    judge(answer);
    return { status: answer.status };
  }
}
