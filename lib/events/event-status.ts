import { ReplaySubject, type Observable } from 'rxjs';
import { GuardedObservable } from './guarded-observable.js';

/** State of the event reader. */
export type EventsStatus =
  /** There is no connection: there are no subscribers, or the application has stopped. */
  | { readonly state: 'closed' }
  /** The connection is being opened. */
  | { readonly state: 'connecting' }
  /** Redis has answered the last read. */
  | { readonly state: 'live' }
  /** Redis does not answer. When it does, reading continues where it stopped. */
  | {
      readonly state: 'lost';
      /** Error of the last read. */
      readonly error: Error;
    }
  /**
   * Events of this queue were trimmed before they could be read, so reload what you show. `missed` is their number. It is null if
   * it is unknown, because Redis has lost its data and started the numbers again. `live` follows at once.
   */
  | {
      readonly state: 'gap';
      /** Name of the queue. */
      readonly queue: string;
      /** How many events were missed. */
      readonly missed: number | null;
    };

/** Holds the status and reports changes. A new subscriber gets the current status first. */
export class StatusReporter {
  private readonly subject = new ReplaySubject<EventsStatus>(1);
  private current: EventsStatus = { state: 'closed' };

  readonly status$: Observable<EventsStatus> = new GuardedObservable((subscriber) =>
    this.subject.subscribe(subscriber),
  );

  constructor() {
    this.subject.next(this.current);
  }

  get live(): boolean {
    return this.current.state === 'live';
  }

  set(state: 'closed' | 'connecting' | 'live'): void {
    if (this.current.state !== state) this.report({ state });
  }

  lost(error: unknown): void {
    if (this.current.state === 'lost') return;
    this.report({ state: 'lost', error: error instanceof Error ? error : new Error(String(error)) });
  }

  gap(queue: string, missed: number | null): void {
    this.report({ state: 'gap', queue, missed });
    this.report({ state: 'live' });
  }

  end(): void {
    this.set('closed');
    this.subject.complete();
  }

  private report(status: EventsStatus): void {
    this.current = status;
    this.subject.next(status);
  }
}
