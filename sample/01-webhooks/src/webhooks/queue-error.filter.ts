import type { ServerResponse } from 'node:http';
import { type ArgumentsHost, Catch, type ExceptionFilter, HttpStatus, Logger } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import { GodwitError } from 'godwit';
import { AddressRefusedError } from './address-guard.js';

const STATUS_BY_CODE: Readonly<Record<string, number>> = {
  GODWIT_INVALID_JOB_ID: HttpStatus.BAD_REQUEST,
  GODWIT_INVALID_OPTION: HttpStatus.BAD_REQUEST,
  GODWIT_JOB_NOT_FOUND: HttpStatus.NOT_FOUND,
  GODWIT_WRONG_STATE: HttpStatus.CONFLICT,
  GODWIT_REDIS_UNAVAILABLE: HttpStatus.SERVICE_UNAVAILABLE,
  GODWIT_REDIS_REFUSED: HttpStatus.SERVICE_UNAVAILABLE,
  GODWIT_NOT_RUNNING: HttpStatus.SERVICE_UNAVAILABLE,
};

/** Turns errors of the queue into HTTP responses with a status, the stable code and the message. */
@Catch(GodwitError)
export class QueueErrorFilter implements ExceptionFilter<GodwitError> {
  private readonly logger = new Logger('Webhooks');

  constructor(private readonly http: HttpAdapterHost) {}

  catch(error: GodwitError, host: ArgumentsHost): void {
    const answer = toAnswer(error);
    // Errors that the caller did not cause are for the operator; the caller must not see their details.
    if (answer.statusCode >= 500) this.logger.error(error);
    const response = host.switchToHttp().getResponse<ServerResponse>();
    this.http.httpAdapter.reply(response, answer, answer.statusCode);
  }
}

function toAnswer(error: GodwitError): { statusCode: number; code: string; message: string } {
  const { code, message } = error;
  if (error instanceof AddressRefusedError) return { statusCode: 400, code: 'ADDRESS_REFUSED', message };
  const statusCode = STATUS_BY_CODE[code] ?? 500;
  if (statusCode < 500) return { statusCode, code, message };
  return { statusCode, code, message: 'The queue does not answer; ask again later.' };
}
