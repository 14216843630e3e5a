import { setTimeout as pause } from 'node:timers/promises';
import { Handle, type JobOf, Processor, UnrecoverableError } from 'godwit';
import { charge, ORDERS, ship } from './orders.js';

/** Only waits instead of working. It does not know its listeners. */
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
