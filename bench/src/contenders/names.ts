/** In the order of the columns. */
export const CONTENDERS = ['godwit', '@nestjs/bullmq', 'bullmq', 'bee-queue', 'groupmq', 'floor'] as const;
