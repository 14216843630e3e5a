import type { INestApplication } from '@nestjs/common';

const PORTS_TO_TRY = 20;

/** Listens on the port, or on the next free one, and returns the port. */
export async function listen(app: INestApplication, port: number, host: string): Promise<number> {
  for (let tried = 0; ; tried++) {
    try {
      await app.listen(port + tried, host);
      return port + tried;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EADDRINUSE' || tried + 1 === PORTS_TO_TRY) throw error;
      console.log(`Port ${port + tried} is taken.`);
    }
  }
}
