import type { ServerResponse } from 'node:http';
import { Injectable } from '@nestjs/common';

interface Received {
  readonly query: URLSearchParams;
  /** `webhook-id`: the same in every attempt of one delivery. */
  readonly id: string;
}

type Behaviour = (received: Received, response: ServerResponse) => void;

const MAX_REMEMBERED = 1_000;

/** The ways in which receivers misbehave, by path. */
@Injectable()
export class Behaviours {
  private readonly failures = new Map<string, number>();

  private readonly byPath: Readonly<Record<string, Behaviour>> = {
    '/ok': (_, response) => response.end('thank you'),
    '/slow': ({ query }, response) => {
      const timer = setTimeout(() => response.end('at last'), numberOf(query, 'ms', 1_500, 60_000));
      response.once('close', () => clearTimeout(timer));
    },
    '/flaky': ({ query, id }, response) => {
      const failed = this.failures.get(id) ?? 0;
      if (failed < numberOf(query, 'fail', 2, 100)) {
        this.remember(id, failed + 1);
        response.writeHead(500).end('not yet');
      } else {
        this.failures.delete(id);
        response.end('now it works');
      }
    },
    '/gone': (_, response) => response.writeHead(410).end('this address is no longer in use'),
    '/down': (_, response) => response.writeHead(503).end('back soon'),
    '/busy': (_, response) => response.writeHead(429).end('slow down'),
    '/moved': (_, response) => response.writeHead(302, { location: 'http://169.254.169.254/' }).end(),
    '/hang': () => {},
  };

  answer(path: string, received: Received, response: ServerResponse): void {
    const behave = Object.hasOwn(this.byPath, path) ? this.byPath[path] : undefined;
    if (behave) behave(received, response);
    else response.writeHead(404).end(`there is only ${Object.keys(this.byPath).join(', ')}`);
  }

  private remember(id: string, failed: number): void {
    this.failures.set(id, failed);
    if (this.failures.size <= MAX_REMEMBERED) return;
    for (const oldest of this.failures.keys()) return void this.failures.delete(oldest);
  }
}

function numberOf(query: URLSearchParams, name: string, otherwise: number, max: number): number {
  const given = query.get(name);
  return given !== null && /^\d{1,9}$/.test(given) ? Math.min(Number(given), max) : otherwise;
}
