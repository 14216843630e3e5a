import type { LinkEvent } from '../contract/engine.js';
import { isPassing } from '../contract/retry.js';
import { GodwitError } from '../errors.js';

/** Says once that Redis cannot be reached or does not serve, and once that it does. */
export class LinkNews {
  private isAway = false;
  private wasThere = false;

  constructor(
    /** As a person may read it: without a password. */
    private readonly place: string,
    private readonly say: (text: string) => void,
    /** Called when it is there again. */
    private readonly back: () => void,
  ) {}

  /** What the connection tells of itself. */
  readonly heard = ({ state, error }: LinkEvent): void => {
    if (state === 'down') this.away(error);
    else if (!error) this.there();
  };

  /** It is not there, or does not serve. */
  away(error: unknown): void {
    if (this.isAway || isRefusal(error)) return;
    this.isAway = true;
    const why = reasonOf(error);
    const what = this.wasThere ? `lost Redis at ${this.place}` : `cannot reach Redis at ${this.place}`;
    this.say(`${what}${why && ` (${why})`}; trying again until it is there`);
  }

  /** It has answered. */
  there(): void {
    const again = this.wasThere ? ' again' : '';
    this.wasThere = true;
    if (!this.isAway) return;
    this.isAway = false;
    this.say(`Redis at ${this.place} is there${again}`);
    this.back();
  }
}

/** What Redis answers to a connection ends the command, or fails the next call: either says it in better words. */
function isRefusal(error: unknown): boolean {
  if (error instanceof GodwitError) return !isPassing(error);
  return error instanceof Error && error.name === 'ReplyError';
}

/** Where a name has several addresses, Node's error of all of them has no message. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return '';
  return error.message || (error as NodeJS.ErrnoException).code || error.name;
}
