import type { Writable } from 'node:stream';
import { Command } from 'ioredis';
import { argText, bytesOf, FixedArgs, flat, headOf, type Arg, type Value } from './fixed-args.js';
import type { Linked } from '../../contract/linked-set.js';

/** Characters from which an argument is written by itself. */
const LARGE = 16 * 1024;
/** Characters up to which Node sends a text from its stack; with more a buffer is less work. */
const SHORT = 4 * 1024;

/** What a command without arguments has in the place of a list. ioredis makes lists flat, and this one is. */
const NONE: Arg[] = Object.assign([], { flat: () => NONE });
/** As ioredis asks for it: one object for all commands. */
const OPTIONS = { replyEncoding: 'utf8' } as const;

/** Whoever has sent commands, and must know which of them are on their way. */
export interface Sender {
  /** Just before its promise ends. */
  ended(command: FlatCommand): void;
  /** What the caller is told in the place of an error of ioredis. */
  explain(verb: string, error: Error): Error;
}

/** What ioredis has set where the connection asks for it. */
interface Timers {
  readonly _commandTimeoutTimer?: NodeJS.Timeout;
  readonly _blockingTimeoutTimer?: NodeJS.Timeout;
}

/**
 * A command of few or of thousands of arguments. Its own encoding takes a quarter of the time of the one that ioredis has: the
 * arguments are not copied and not measured one by one, and those that are the same at every call not even written.
 *
 * Its promise is its own too, and the one the caller gets: what ioredis makes for each command, two functions kept as properties and a
 * promise behind a promise, is left out. V8 puts such functions among the old objects at once, and all stays that can be reached from
 * there until a full collection.
 */
export class FlatCommand extends Command implements Linked<FlatCommand> {
  before: FlatCommand | undefined;
  after: FlatCommand | undefined;
  isIn = false;
  /** Bytes it was sent in, nearly; 0 until then. */
  size = 0;
  readonly sentAt = performance.now();
  private given: readonly Arg[];
  private isOver = false;
  private fulfil!: (reply: unknown) => void;
  private refuse!: (error: Error) => void;

  constructor(
    name: string,
    args: readonly Arg[],
    /** What it is for, as errors say it. */
    readonly verb = name,
    /** How long its connection may be silent before it fails; for the sender. */
    readonly silentMs = Infinity,
    /** When its caller is told that there is no answer yet, silent or not, on the clock of `performance.now()`. */
    public until = Infinity,
    private sender: Sender | null = null,
  ) {
    super(name, NONE as Value[], OPTIONS);
    this.given = args;
    this.promise = new Promise((resolve, reject) => {
      this.fulfil = resolve;
      this.refuse = reject;
    });
  }

  // Parts of ioredis that are properties there, of which TypeScript lets no accessor take the place.
  static {
    Object.defineProperties(this.prototype, {
      initPromise: { value: () => undefined },
      // For whoever stands between, and may change what is there: made when it is looked at.
      args: {
        get(this: FlatCommand) {
          this.given = flat(this.given);
          return this.given;
        },
        set(this: FlatCommand, args: readonly Arg[]) {
          this.given = args;
        },
      },
      // Who looks on at commands puts a function of his own there, and calls ours without its object.
      resolve: {
        get(this: FlatCommand) {
          return (raw: Buffer) => this.take(raw);
        },
        set: put('resolve'),
      },
      reject: {
        get(this: FlatCommand) {
          return (error: Error) => this.explain(error);
        },
        set: put('reject'),
      },
    });
  }

  /** Its answer: what comes behind the first end is not heard. */
  give(reply: unknown): void {
    if (this.end()) this.fulfil(reply);
  }

  fail(error: Error): void {
    if (this.end()) this.refuse(error);
  }

  /** Its caller waits no longer. It stays with the sender, which goes on looking whether its connection is silent. */
  expire(error: Error): void {
    this.until = Infinity;
    this.refuse(error);
  }

  /** Somebody else answers in its place: what becomes of it is told to nobody but those who hold its promise. */
  leaveSender(): void {
    this.sender?.ended(this);
    this.sender = null;
  }

  private take(raw: Buffer): void {
    let reply: unknown;
    try {
      reply = this.transformReply(raw);
    } catch (error) {
      return this.explain(error as Error);
    }
    this.give(reply);
  }

  private explain(error: Error): void {
    if (!this.isOver) this.fail(this.sender ? this.sender.explain(this.verb, error) : error);
  }

  private end(): boolean {
    if (this.isOver) return false;
    this.isOver = true;
    this.isResolved = true;
    const { _commandTimeoutTimer, _blockingTimeoutTimer } = this as unknown as Timers;
    if (_commandTimeoutTimer) clearTimeout(_commandTimeoutTimer);
    if (_blockingTimeoutTimer) clearTimeout(_blockingTimeoutTimer);
    this.sender?.ended(this);
    this.given = NONE;
    return true;
  }

  override toWritable(socket: Pick<Writable, 'cork' | 'uncork' | 'write'>): string | Buffer {
    if (this.hasLarge()) return this.writeTo(socket);
    const text = this.encode(lengthOf);
    this.size = text.length;
    // Nearly always all is ASCII: then the lengths are those of the texts, and each character is its byte.
    if (Buffer.byteLength(text) === text.length)
      return text.length < SHORT ? text : Buffer.from(text, 'latin1');
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
      this.size += bytes;
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
    for (let at = this.first; at < given.length; at++) {
      const arg = given[at] as Value;
      text += argText(typeof arg === 'string' ? arg : String(arg), measure);
    }
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

/** A property of its own in the place of the accessor. */
function put(name: string) {
  return function (this: FlatCommand, value: unknown): void {
    Object.defineProperty(this, name, { value, writable: true, configurable: true });
  };
}
