import { Injectable, type OnApplicationBootstrap, type OnModuleDestroy } from '@nestjs/common';
import { InjectQueue, Queue } from 'godwit';

/** Adds jobs, as a small shop would. */
@Injectable()
export class Load implements OnApplicationBootstrap, OnModuleDestroy {
  private timer: NodeJS.Timeout | undefined;
  private order = 1_000;

  constructor(
    @InjectQueue('emails') private readonly emails: Queue,
    @InjectQueue('media') private readonly media: Queue,
    @InjectQueue('reports') private readonly reports: Queue,
  ) {}

  onApplicationBootstrap(): void {
    this.timer = setInterval(() => void this.tick().catch(() => {}), 500);
  }

  onModuleDestroy(): void {
    clearInterval(this.timer);
  }

  /** Adds the jobs of half a second. */
  async tick(): Promise<void> {
    const orders = Array.from({ length: 4 + Math.floor(Math.random() * 8) }, () => (this.order += 1));
    await this.emails.addBulk(orders.map((order) => ({ name: 'receipt', data: mailOf(order) })));
    const order = this.order;
    if (order % 3 === 0) await this.emails.add('digest', mailOf(order), { delay: '1m', priority: 5 });
    if (order % 5 === 0) await this.media.add('transcode', videoOf(order));
    if (order % 40 === 0) await this.reports.add('refunds', { day: new Date().toISOString().slice(0, 10) });
  }
}

function videoOf(order: number) {
  const seller = ['anna', 'ben', 'cleo'][(order / 5) % 3];
  return { video: `clip-${order}.mp4`, seller, size: order * 7_919 };
}

function mailOf(order: number) {
  const to =
    order % 97 === 0 ? 'nobody' : order % 41 === 0 ? 'full@example.org' : `customer-${order}@example.org`;
  return {
    to,
    order,
    total: order * 1.07,
    customer: { email: to, vip: order % 10 === 0 },
    unsubscribeToken: `t-${order}`,
  };
}
