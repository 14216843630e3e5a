import { Controller, Get, Module } from '@nestjs/common';
import { HealthCheck, HealthCheckService, TerminusModule } from '@nestjs/terminus';
import { QueueHealthIndicator } from 'godwit/terminus';

@Controller('health')
export class HealthController {
  constructor(
    private readonly health: HealthCheckService,
    private readonly queues: QueueHealthIndicator,
  ) {}

  @Get()
  @HealthCheck()
  check() {
    return this.health.check([() => this.queues.check('queues', { queues: ['email'], maxOldest: '1m' })]);
  }
}

@Module({
  imports: [TerminusModule],
  controllers: [HealthController],
  providers: [QueueHealthIndicator],
})
export class HealthModule {}
