import { Command, CommandHandler, type ICommandHandler } from '@nestjs/cqrs';
import { QueueProducer } from 'godwit';
import { Journal } from '../journal.js';
import { ship } from './orders.js';

export class ShipOrder extends Command<void> {
  constructor(readonly order: string) {
    super();
  }
}

@CommandHandler(ShipOrder)
export class ShipOrderHandler implements ICommandHandler<ShipOrder> {
  constructor(
    private readonly producer: QueueProducer,
    private readonly journal: Journal,
  ) {}

  /** Every listening process gets the payment event; the id of the job makes sure that the order is shipped once. */
  async execute({ order }: ShipOrder): Promise<void> {
    const { duplicate } = await this.producer.add(ship, { order }, { id: `ship-${order}` });
    if (!duplicate) this.journal.write('@CommandHandler', `order ${order} is to be shipped`);
  }
}
