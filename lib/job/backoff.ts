import type { Duration } from './duration.js';

/** Wait before the next attempt. A bare duration is a fixed one; a list gives each retry its own, the last one stays. */
export type BackoffOption =
  | Duration
  | readonly Duration[]
  | { readonly type: 'fixed'; readonly delay: Duration; readonly jitter?: number }
  | {
      readonly type: 'exponential';
      readonly delay: Duration;
      readonly max?: Duration;
      readonly factor?: number;
      readonly jitter?: number;
    }
  | ((attempt: number, error: unknown) => Duration);
