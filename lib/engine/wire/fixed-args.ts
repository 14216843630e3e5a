/** What is sent: texts, and numbers that become texts. */
export type Value = string | number;

/** Between two arguments stands the length of the second: most are short, so these texts are made once. */
const HEADS = Array.from({ length: 1024 }, (_, length) => headOf(length));

/** The first arguments of calls that differ in what follows: written once, and from then on one piece of text. */
export class FixedArgs {
  readonly text: string;

  constructor(readonly values: readonly Value[]) {
    this.text = values.map((value) => argText(String(value), bytesOf)).join('');
  }
}

/** One argument, or several; those may only be the first. */
export type Arg = Value | FixedArgs;

/** All of them one by one: the same list where they are so already. */
export function flat(args: readonly Arg[]): readonly Value[] {
  const first = args[0];
  if (!(first instanceof FixedArgs)) return args as Value[];
  return [...first.values, ...(args.slice(1) as Value[])];
}

/** What `EVALSHA` was given, for `EVAL`. */
export function inFull(text: string, args: readonly Arg[]): Value[] {
  return flat(args).with(0, text);
}

/** One argument as it is sent; `measure`: how long it is. */
export function argText(arg: string, measure: (text: string) => number): string {
  const length = measure(arg);
  return (length < HEADS.length ? HEADS[length]! : headOf(length)) + arg;
}

export function bytesOf(text: string): number {
  return Buffer.byteLength(text);
}

/** What stands before an argument of so many bytes. */
export function headOf(length: number): string {
  return `\r\n$${length}\r\n`;
}
