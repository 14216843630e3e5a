import type { Writable } from 'node:stream';
import { Command } from 'ioredis';
import { argText, bytesOf, FixedArgs, flat, headOf, type Arg, type Value } from './fixed-args.js';

/** Characters from which an argument is written by itself. */
const LARGE = 16 * 1024;

/** What a command without arguments has in the place of a list. */
const NONE: readonly Arg[] = [];
/** As ioredis asks for it: one object for all commands. */
const OPTIONS = { replyEncoding: 'utf8' } as const;

/**
 * A command of few or of thousands of arguments. Its own encoding takes a quarter of the time of the one that ioredis has: the
 * arguments are not copied and not measured one by one, and those that are the same at every call not even written.
 *
 * Its promise, which ioredis makes, resolves with nothing, and `takeReply` has the answer. V8 puts a function that is assigned to a
 * property, as each command of ioredis has one, among the old objects at once: until a full collection all stays that can be
 * reached from there, and arguments and replies would be copied there too.
 */
export class FlatCommand extends Command {
  private given: readonly Arg[];
  private reply: unknown;

  constructor(name: string, args: readonly Arg[]) {
    super(name, undefined, OPTIONS);
    this.given = args;
  }

  static {
    // For whoever stands between, and may change what is there: made when it is looked at. ioredis has a property of that name, and
    // TypeScript lets no accessor take the place of one.
    Object.defineProperty(this.prototype, 'args', {
      get(this: FlatCommand) {
        this.given = flat(this.given);
        return this.given;
      },
      set(this: FlatCommand, args: readonly Arg[]) {
        this.given = args;
      },
    });
  }

  /** What ioredis does with an answer just before the promise resolves. */
  override transformReply(raw: Buffer | Buffer[]): any {
    this.reply = super.transformReply(raw);
    this.given = NONE;
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
    const { given } = this;
    let text = this.start();
    for (let at = this.first; at < given.length; at++) {
      const arg = String(given[at] as Value);
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
    const { given } = this;
    for (let at = this.first; at < given.length; at++) if (isLarge(given[at]!)) return true;
    return false;
  }

  private encode(measure: (text: string) => number): string {
    const { given } = this;
    let text = this.start();
    for (let at = this.first; at < given.length; at++) text += argText(String(given[at] as Value), measure);
    return `${text}\r\n`;
  }

  /** The name, and what is written already. */
  private start(): string {
    const { given, name } = this;
    const fixed = given[0];
    const isFixed = fixed instanceof FixedArgs;
    const count = given.length + (isFixed ? fixed.values.length : 1);
    return `*${count}\r\n$${name.length}\r\n${name}${isFixed ? fixed.text : ''}`;
  }

  /** The place of the first argument that is still to be written. */
  private get first(): 0 | 1 {
    return this.given[0] instanceof FixedArgs ? 1 : 0;
  }
}

function isLarge(arg: Arg): boolean {
  return typeof arg === 'string' && arg.length >= LARGE;
}

function lengthOf(text: string): number {
  return text.length;
}
