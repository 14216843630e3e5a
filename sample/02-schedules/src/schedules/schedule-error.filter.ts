import type { ServerResponse } from 'node:http';
import { type ArgumentsHost, Catch, type ExceptionFilter, Logger } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import { GodwitError, InvalidOptionError, ScheduleNotFoundError } from 'godwit';

/** Errors of the queue as HTTP answers. */
@Catch(GodwitError)
export class ScheduleErrorFilter implements ExceptionFilter<GodwitError> {
  private readonly logger = new Logger('Schedules');

  constructor(private readonly http: HttpAdapterHost) {}

  catch(error: GodwitError, host: ArgumentsHost): void {
    const statusCode = statusOf(error);
    // Errors that the caller did not cause are for the operator; the caller must not see their details.
    if (statusCode === 503) this.logger.error(error);
    const message = statusCode === 503 ? 'The queue does not answer; ask again later.' : error.message;
    const response = host.switchToHttp().getResponse<ServerResponse>();
    this.http.httpAdapter.reply(response, { statusCode, code: error.code, message }, statusCode);
  }
}

function statusOf(error: GodwitError): number {
  if (error instanceof ScheduleNotFoundError) return 404;
  return error instanceof InvalidOptionError ? 400 : 503;
}
