/** Milliseconds as a number, or a string such as `'250ms'`, `'10s'`, `'5m'`, `'2h'`, `'90d'`. */
export type Duration = number | string;
