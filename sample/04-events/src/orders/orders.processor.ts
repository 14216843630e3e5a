import { setTimeout as pause } from 'node:timers/promises';
import { Handle, type JobOf, Processor, UnrecoverableError } from 'godwit';
import { charge, ORDERS, ship } from './orders.js';

/** The work is played by waiting. It knows nothing of those who hear of it. */
@Processor(ORDERS)
export class OrdersProcessor {
  @Handle(charge)
  async charge({ data, signal }: JobOf<typeof charge>): Promise<void> {
    await pause(200, undefined, { signal });
    if (data.cents > 10_000) throw new UnrecoverableError('the card is declined');
  }

  @Handle(ship)
  async ship({ signal }: JobOf<typeof ship>): Promise<void> {
    await pause(300, undefined, { signal });
  }
}
