/** What became of an `add`. */
export interface AddResult {
  readonly id: string;
  readonly queue: string;
  readonly name: string;
  /** True where a job with this id was already in the queue, in whatever state; that one was left as it is. */
  readonly duplicate: boolean;
}
