/** An argument of a command. Numbers are sent as text. */
export type Value = string | number;

/** The length of each argument is sent before it. Most are short, so these texts are prepared. */
const HEADS = Array.from({ length: 1024 }, (_, length) => headOf(length));

/** The first arguments of calls that differ only in later ones. They are encoded once, as one text. */
export class FixedArgs {
  readonly text: string;

  constructor(readonly values: readonly Value[]) {
    this.text = values.map((value) => argText(String(value), bytesOf)).join('');
  }
}

/** One argument, or fixed arguments, which may only come first. */
export type Arg = Value | FixedArgs;

/** All arguments as one list. Returns the given list if it has no fixed arguments. */
export function flat(args: readonly Arg[]): readonly Value[] {
  const first = args[0];
  if (!(first instanceof FixedArgs)) return args as Value[];
  return [...first.values, ...(args.slice(1) as Value[])];
}

/** Turns the arguments of `EVALSHA` into those of `EVAL`. */
export function inFull(text: string, args: readonly Arg[]): Value[] {
  return flat(args).with(0, text);
}

/** One argument as it is sent. `measure` gives its length in bytes. */
export function argText(arg: string, measure: (text: string) => number): string {
  const length = measure(arg);
  return (length < HEADS.length ? HEADS[length]! : headOf(length)) + arg;
}

export function bytesOf(text: string): number {
  return Buffer.byteLength(text);
}

/** The text before an argument of this length. */
export function headOf(length: number): string {
  return `\r\n$${length}\r\n`;
}
