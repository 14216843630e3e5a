/** The order to a measuring process. */
export interface Order {
  readonly contender: string;
  readonly scenario: string;
  readonly phase: 'prepare' | 'measure';
  readonly url: string;
  readonly jobs: number;
}

/** The messages of a measuring process. */
export type Message =
  | { readonly kind: 'progress'; readonly done: number; readonly total: number }
  | { readonly kind: 'figures'; readonly figures: Record<string, number> };
