/** The calls that a companion process answers, by name. Arguments and answers are cloned. */
export type Acts = Record<string, (argument: never) => unknown>;

export interface Question {
  readonly id: number;
  readonly act: string;
  readonly argument: unknown;
}

export interface Answer {
  readonly id: number;
  readonly value?: unknown;
  /** Instead of a value if the call failed. */
  readonly error?: string;
}
