import { Module } from '@nestjs/common';
import { CqrsModule } from '@nestjs/cqrs';
import { EventEmitterModule } from '@nestjs/event-emitter';
import { CqrsBridge } from './cqrs.bridge.js';
import { EventEmitterBridge } from './event-emitter.bridge.js';

@Module({
  imports: [CqrsModule.forRoot(), EventEmitterModule.forRoot({ wildcard: true })],
  providers: [CqrsBridge, EventEmitterBridge],
})
export class BridgesModule {}
