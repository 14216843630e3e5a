import { Module } from '@nestjs/common';
import { ChoresModule } from '../chores/chores.module.js';
import { SchedulesController } from './schedules.controller.js';

@Module({ imports: [ChoresModule], controllers: [SchedulesController] })
export class SchedulesModule {}
