import type { EventOf } from 'godwit';

/** A job has done its work, as the event bus knows it. */
export class JobCompleted {
  constructor(readonly event: EventOf<'completed'>) {}
}

/** A job has given up. */
export class JobDied {
  constructor(readonly event: EventOf<'dead'>) {}
}
