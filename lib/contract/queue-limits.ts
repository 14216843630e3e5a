/** What is kept of a queue. */
export interface QueueLimits {
  /** Events kept for readers that resume; 0: none are written. */
  readonly maxEvents: number;
  /** Null: of any age. */
  readonly eventsAgeMs: number | null;
  /** About how many bytes events with large values may take. */
  readonly eventsMaxBytes: number;
  readonly deadMax: number;
  readonly deadAgeMs: number;
  /** Completed jobs kept, however long their retention. */
  readonly completedMax: number;
}
