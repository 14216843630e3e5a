import { Module } from '@nestjs/common';
import { QueueModule } from 'godwit';
import { Journal } from '../journal.js';
import { DeclinedHandler } from './declined.handler.js';
import { OrderSaga } from './order.saga.js';
import { ORDERS } from './orders.js';
import { OrdersProcessor } from './orders.processor.js';
import { ShipOrderHandler } from './ship-order.command.js';
import { Watchers } from './watchers.js';

@Module({
  imports: [
    // A shipped parcel holds its id for this long, so a process that gets the payment event late ships nothing twice.
    QueueModule.registerQueue({
      name: ORDERS,
      defaults: { retention: '1h', idHeldBy: ['completed', 'dead'] },
    }),
  ],
  providers: [OrdersProcessor, OrderSaga, ShipOrderHandler, DeclinedHandler, Watchers, Journal],
})
export class OrdersModule {}
