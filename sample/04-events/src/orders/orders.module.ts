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
    // The job of a shipped parcel holds its id for this long, so a process that receives the payment event late does not ship it
    // twice.
    QueueModule.registerQueue({
      name: ORDERS,
      defaults: { retention: '1h', idHeldBy: ['completed', 'dead'] },
    }),
  ],
  providers: [OrdersProcessor, OrderSaga, ShipOrderHandler, DeclinedHandler, Watchers, Journal],
})
export class OrdersModule {}
