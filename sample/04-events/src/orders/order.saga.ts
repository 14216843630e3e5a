import { Injectable } from '@nestjs/common';
import { type ICommand, type IEvent, ofType, Saga } from '@nestjs/cqrs';
import { filter, map, type Observable } from 'rxjs';
import { JobCompleted } from '../bridges/job-events.js';
import { charge } from './orders.js';
import { ShipOrder } from './ship-order.command.js';

@Injectable()
export class OrderSaga {
  /** Ships every paid order. */
  @Saga()
  paid = (events$: Observable<IEvent>): Observable<ICommand> =>
    events$.pipe(
      ofType(JobCompleted),
      filter(({ event }) => event.name === charge.name),
      map(({ event }) => new ShipOrder(event.jobId.replace(/^charge-/, ''))),
    );
}
