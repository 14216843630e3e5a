// Run by queue-events.spec.ts as a process of its own: every way to throw out of a subscription to job events.
import { map } from 'rxjs';
import { QueueEvents } from '#lib/events/queue-events.js';

let asked = 0;
/** @type {any} */
const engine = {
  openEvents: async () => {},
  closeEvents: async () => {},
  onLink: () => () => {},
  lastEvent: async () => 0,
  readEvents: async () => {
    const type = ['added', 'active', 'completed'][asked++];
    if (!type) return new Promise(() => {});
    await new Promise((resolve) => setImmediate(resolve));
    const raw = {
      id: 'a',
      name: 'n',
      attempt: 1,
      durationUs: 0,
      delayMs: 0,
      reason: '',
      error: null,
      progress: null,
    };
    return [
      {
        queue: 'email',
        first: asked,
        last: asked,
        at: Date.now(),
        events: [{ ...raw, number: asked, type }],
      },
    ];
  },
};

const events = new QueueEvents(
  () => engine,
  () => ['email'],
  () => {},
);
const boom = (who) => () => {
  throw new Error(`thrown by ${who}`);
};
const stream = events.of('email');

stream.subscribe(boom('next'));
// oxlint-disable typescript/no-misused-promises -- the mistake this is about
stream.subscribe({ next: async () => boom('async')(), complete: boom('complete') });
stream.pipe(map((event) => event.eventId)).subscribe(boom('piped'));
stream.pipe(map(boom('operator'))).subscribe(() => {});
events.status$.subscribe(boom('status'));
stream.subscribe(async (event) => {
  console.log(`told ${event.type} ${event.eventId}`);
  // Nothing holds the process after this; what RxJS throws it throws from a timer, which comes before the end.
  if (event.type === 'completed') await events.close();
});
