import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Injectable, type OnApplicationShutdown, type OnModuleInit } from '@nestjs/common';
import { Settings } from '../settings.js';
import { AddressGuard } from '../webhooks/address-guard.js';
import { findFault } from '../webhooks/signature.js';
import { Behaviours } from './behaviours.js';

const MAX_BYTES = 256 * 1024;

/** A test receiver of webhooks: a server on another port, which fails in the way that the URL asks for. */
@Injectable()
export class Receiver implements OnModuleInit, OnApplicationShutdown {
  private readonly server = createServer((request, response) => {
    this.receive(request, response).catch(() => response.destroy());
  });

  constructor(
    private readonly behaviours: Behaviours,
    private readonly settings: Settings,
    private readonly addresses: AddressGuard,
  ) {}

  get url(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  async onModuleInit(): Promise<void> {
    this.server.listen(0, '127.0.0.1');
    await once(this.server, 'listening');
    this.addresses.allow(new URL(this.url).host);
  }

  /** This hook runs after the queue has stopped, so that running deliveries can end first. */
  onApplicationShutdown(): void {
    this.server.close();
    this.server.closeAllConnections();
  }

  private async receive(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await read(request);
    const fault = findFault(this.settings.secret, request.headers, body);
    if (fault) return void response.writeHead(401, 'Unauthorized').end(fault);
    const { pathname, searchParams } = new URL(request.url ?? '/', this.url);
    this.behaviours.answer(
      pathname,
      { query: searchParams, id: String(request.headers['webhook-id']) },
      response,
    );
  }
}

async function read(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > MAX_BYTES) throw new Error(`more than ${MAX_BYTES} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}
