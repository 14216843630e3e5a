/** What a process beside the measured one can be asked to do, by name; arguments and answers are cloned. */
export type Acts = Record<string, (argument: never) => unknown>;

export interface Question {
  readonly id: number;
  readonly act: string;
  readonly argument: unknown;
}

export interface Answer {
  readonly id: number;
  readonly value?: unknown;
  /** In place of a value where the act failed. */
  readonly error?: string;
}
