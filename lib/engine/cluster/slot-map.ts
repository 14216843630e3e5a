import { Command } from 'ioredis';
import { flat, type Arg } from '../wire/fixed-args.js';

export interface Address {
  readonly host: string;
  readonly port: number;
}

/** A row of `CLUSTER SLOTS`: first and last slot, the master, its replicas. */
export type SlotRange = [number, number, ...[string | null, number, ...unknown[]][]];

/** The known master of each slot. */
export class SlotMap {
  private readonly owners: (Address | undefined)[] = [];
  private readonly known = new Map<string, Address>();

  /** @param asked the node that answered. A node that does not know its own name leaves it out. */
  constructor(ranges: readonly SlotRange[] = [], asked?: Address, reach = (address: Address) => address) {
    for (const [first, last, ...nodes] of ranges) {
      const [master] = nodes.map(([host, port]) => {
        // A missing name means the address that was asked, which is not mapped.
        const address = host ? reach({ host, port }) : { host: asked!.host, port };
        return this.intern(address);
      });
      for (let slot = first; slot <= last; slot++) this.owners[slot] = master;
    }
  }

  get isEmpty(): boolean {
    return this.owners.length === 0;
  }

  owner(slot: number): Address | undefined {
    return this.owners[slot];
  }

  assign(slot: number, address: Address): void {
    this.owners[slot] = this.intern(address);
  }

  masters(): readonly Address[] {
    return [...new Set(this.owners)].filter((owner) => owner !== undefined);
  }

  /** Masters and replicas. */
  nodes(): readonly Address[] {
    return [...this.known.values()];
  }

  /** Returns one object per address, so that addresses can be compared with `===`. */
  private intern(address: Address): Address {
    const name = nameOf(address);
    const known = this.known.get(name) ?? address;
    this.known.set(name, known);
    return known;
  }
}

export function nameOf({ host, port }: Address): string {
  return `${host}:${port}`;
}

/** The slot of the first key of a command. Null if the command has no keys. */
export function slotOf(name: string, args: readonly Arg[]): number | null {
  return new Command(name, flat(args) as string[]).getSlot();
}

/** `MOVED 3999 10.0.0.1:6381`, `ASK 3999 10.0.0.1:6381`: where the node redirects the call to. */
export function readRedirection(
  text: string,
  asked: Address,
): { kind: 'MOVED' | 'ASK'; slot: number; to: Address } | null {
  const found = /^-?(MOVED|ASK) (\d+) (\S*):(\d+)/.exec(text);
  if (!found) return null;
  const [, kind, slot, host, port] = found;
  return {
    kind: kind as 'MOVED' | 'ASK',
    slot: Number(slot),
    to: { host: host || asked.host, port: Number(port) },
  };
}
