import type { Writable } from 'node:stream';
import { Command } from 'ioredis';
import { argText, bytesOf, FixedArgs, flat, headOf, type Arg, type Value } from './fixed-args.js';

/** Characters from which an argument is written by itself. */
const LARGE = 16 * 1024;

/**
 * A command of few or of thousands of arguments. Its own encoding takes a quarter of the time of the one that ioredis has: the
 * arguments are not copied and not measured one by one, and those that are the same at every call not even written.
 *
 * Its promise, which ioredis makes, resolves with nothing, and `takeReply` has the answer. V8 puts a function that is assigned to a
 * property, as each command of ioredis has one, among the old objects at once: until a full collection all stays that can be
 * reached from there, and arguments and replies would be copied there too.
 */
export class FlatCommand extends Command {
  private readonly fixed: FixedArgs | undefined;
  private reply: unknown;

  constructor(name: string, args: readonly Arg[]) {
    super(name, [], { replyEncoding: 'utf8' });
    this.fixed = args[0] instanceof FixedArgs ? args[0] : undefined;
    this.args = (this.fixed ? flat(args) : args) as string[];
  }

  /** What ioredis does with an answer just before the promise resolves. */
  override transformReply(raw: Buffer | Buffer[]): any {
    this.reply = super.transformReply(raw);
    this.args = [];
  }

  /** What Redis answered; there only once. */
  takeReply(): unknown {
    const { reply } = this;
    this.reply = undefined;
    return reply;
  }

  override toWritable(socket: Pick<Writable, 'cork' | 'uncork' | 'write'>): string | Buffer {
    if (this.hasLarge()) return this.writeTo(socket);
    const text = this.encode(lengthOf);
    // Nearly always all is ASCII: then the lengths are those of the texts, and each character is its byte.
    if (Buffer.byteLength(text) === text.length) return Buffer.from(text, 'latin1');
    return this.encode(bytesOf);
  }

  /** Writes large arguments by themselves: in one text with all others they would be copied twice more, into memory that is new each time. */
  private writeTo(socket: Pick<Writable, 'cork' | 'uncork' | 'write'>): string {
    let text = this.start();
    for (const value of this.args as readonly Value[]) {
      const arg = String(value);
      if (!isLarge(arg)) {
        text += argText(arg, bytesOf);
        continue;
      }
      const bytes = bytesOf(arg);
      socket.cork();
      socket.write(text + headOf(bytes));
      socket.write(arg, bytes === arg.length ? 'latin1' : 'utf8');
      socket.uncork();
      text = '';
    }
    return `${text}\r\n`;
  }

  private hasLarge(): boolean {
    const args: readonly Value[] = this.args as string[];
    for (let at = this.fixed?.values.length ?? 0; at < args.length; at++) if (isLarge(args[at]!)) return true;
    return false;
  }

  private start(): string {
    return `*${this.args.length + 1}\r\n$${this.name.length}\r\n${this.name}`;
  }

  private encode(measure: (text: string) => number): string {
    const { fixed } = this;
    const args: readonly Value[] = this.args as string[];
    let text = this.start();
    let at = 0;
    // Whoever stands between may have put another script in its place.
    if (fixed && fixed.values[0] === args[0]) {
      text += fixed.text;
      at = fixed.values.length;
    }
    for (; at < args.length; at++) text += argText(String(args[at]), measure);
    return `${text}\r\n`;
  }
}

function isLarge(arg: Value): boolean {
  return typeof arg === 'string' && arg.length >= LARGE;
}

function lengthOf(text: string): number {
  return text.length;
}
