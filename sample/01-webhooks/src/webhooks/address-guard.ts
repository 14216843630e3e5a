import dns from 'node:dns';
import { BlockList, isIP, type LookupFunction } from 'node:net';
import { Injectable } from '@nestjs/common';
import { UnrecoverableError } from 'godwit';
import { Settings } from '../settings.js';
import { nonPublicNetworks } from './non-public-networks.js';

/** The address is not on the public internet and not on the allow-list. Trying again would not help. */
export class AddressRefusedError extends UnrecoverableError {
  constructor(address: string) {
    super(`${address} does not lead to a public address, and WEBHOOK_ALLOW does not name it`);
  }
}

interface Exception {
  readonly network: BlockList;
  /** Undefined means every port. */
  readonly port: number | undefined;
}

/**
 * Keeps deliveries out of networks that only this machine can reach: otherwise anyone who may enter a URL could read private
 * servers through this one. A name is checked by the addresses that it resolves to when the connection is made, and the
 * connection goes to the checked address. So a name whose address changes in between (DNS rebinding) gains nothing.
 */
@Injectable()
export class AddressGuard {
  private readonly refused = nonPublicNetworks();
  private readonly exceptions: Exception[] = [];

  constructor({ allow }: Settings) {
    for (const entry of allow) this.allow(entry);
  }

  /**
   * Adds an exception: an address or network, optionally with a port.
   *
   * @example
   * guard.allow('10.2.0.0/16'); guard.allow('127.0.0.1:4001'); guard.allow('[::1]:4001');
   */
  allow(entry: string): void {
    const match =
      /^(?:\[(?<boxed>[^\]]+)\]|(?<bare>[\d.]+|[\da-f:.]+))(?:\/(?<bits>\d+))?(?::(?<port>\d+))?$/i.exec(
        entry,
      );
    const { boxed, bare, bits, port } = match?.groups ?? {};
    const address = boxed ?? bare ?? '';
    const family = isIP(address);
    const longest = family === 6 ? 128 : 32;
    if (family === 0 || Number(bits ?? 0) > longest || Number(port ?? 0) > 65_535) {
      throw new Error(
        `WEBHOOK_ALLOW takes entries like 10.2.0.0/16, 127.0.0.1:4001 or [::1]:4001, got "${entry}"`,
      );
    }
    const network = new BlockList();
    network.addSubnet(address, Number(bits ?? longest), family === 6 ? 'ipv6' : 'ipv4');
    this.exceptions.push({ network, port: port === undefined ? undefined : Number(port) });
  }

  /**
   * Checks a URL before any name is resolved.
   *
   * @throws {AddressRefusedError}
   */
  checkUrl(url: URL): void {
    const host = url.hostname.replace(/^\[|\]$/g, '').replace(/\.$/, '');
    if (isIP(host) !== 0 && !this.permits(host, portOf(url))) throw new AddressRefusedError(host);
    if (
      /(^|\.)localhost$/.test(host) &&
      !this.permits('127.0.0.1', portOf(url)) &&
      !this.permits('::1', portOf(url))
    ) {
      throw new AddressRefusedError(host);
    }
  }

  /** Resolves names for a connection to this URL, and returns only permitted addresses. */
  lookupFor(url: URL): LookupFunction {
    return (hostname, options, callback) => {
      dns.lookup(hostname, { ...options, all: true }, (error, found) => {
        if (error) return callback(error, []);
        const permitted = found.filter(({ address }) => this.permits(address, portOf(url)));
        const first = permitted[0];
        if (!first) {
          // The message has no address, because it would show the sender what is in the private network.
          return callback(new AddressRefusedError(hostname), []);
        }
        if (options.all) callback(null, permitted);
        else callback(null, first.address, first.family);
      });
    };
  }

  private permits(address: string, port: number): boolean {
    const family = isIP(address) === 6 ? 'ipv6' : 'ipv4';
    if (!this.refused.check(address, family)) return true;
    return this.exceptions.some(
      (exception) =>
        exception.network.check(address, family) && (exception.port === undefined || exception.port === port),
    );
  }
}

function portOf(url: URL): number {
  return Number(url.port) || (url.protocol === 'https:' ? 443 : 80);
}
