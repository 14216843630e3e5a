import type { Scenario } from '../scenario.js';

/** Which contender does what in which round. */
export interface Turn {
  readonly scenario: Scenario;
  readonly contender: string;
  readonly round: number;
}
