/** What a measuring process is told to do. */
export interface Order {
  readonly contender: string;
  readonly scenario: string;
  readonly phase: 'prepare' | 'measure';
  readonly url: string;
  readonly jobs: number;
}

/** What a measuring process says. */
export type Message =
  | { readonly kind: 'progress'; readonly done: number; readonly total: number }
  | { readonly kind: 'figures'; readonly figures: Record<string, number> };
