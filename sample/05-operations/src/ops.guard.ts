import { timingSafeEqual } from 'node:crypto';
import { type CanActivate, type ExecutionContext, Injectable, UnauthorizedException } from '@nestjs/common';
import { Settings } from './settings.js';

interface HttpRequest {
  readonly headers: { readonly authorization?: string };
}
interface HttpResponse {
  header(name: string, value: string): unknown;
}

/** Asks for the password of the user `ops`. In your application, use the guard that you have already. */
@Injectable()
export class OpsGuard implements CanActivate {
  constructor(private readonly settings: Settings) {}

  canActivate(context: ExecutionContext): boolean {
    const http = context.switchToHttp();
    const { authorization = '' } = http.getRequest<HttpRequest>().headers;
    const expected = Buffer.from(`Basic ${Buffer.from(`ops:${this.settings.password}`).toString('base64')}`);
    const given = Buffer.from(authorization);
    if (given.length === expected.length && timingSafeEqual(given, expected)) return true;
    http.getResponse<HttpResponse>().header('WWW-Authenticate', 'Basic realm="queues"');
    throw new UnauthorizedException();
  }
}
