import type { IncomingMessage, ServerResponse } from 'node:http';
import { isIP } from 'node:net';
import { Injectable, type NestMiddleware } from '@nestjs/common';
import { Settings } from './settings.js';

/**
 * Answers only requests for this server's own names. There is no login: without this, a website could give its name the address
 * of this machine (DNS rebinding), and a browser here would let that site's scripts call the API. Requests by an IP address are
 * allowed, because such an address is not a name that a website controls.
 */
@Injectable()
export class HostMiddleware implements NestMiddleware<IncomingMessage, ServerResponse> {
  constructor(private readonly settings: Settings) {}

  use(request: IncomingMessage, response: ServerResponse, next: () => void): void {
    if (this.isOurs(request.headers.host ?? '')) return next();
    response.writeHead(421, { 'content-type': 'application/json' });
    response.end(
      JSON.stringify({ statusCode: 421, message: 'This server does not answer for this host; see HOSTS.' }),
    );
  }

  private isOurs(host: string): boolean {
    const name = host.replace(/:\d*$/, '').toLowerCase();
    return (
      isIP(name.replace(/^\[|\]$/g, '')) !== 0 || name === 'localhost' || this.settings.hosts.includes(name)
    );
  }
}
