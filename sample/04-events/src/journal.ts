import { Injectable } from '@nestjs/common';

/** Prints one line for each event that a listener gets. */
@Injectable()
export class Journal {
  write(who: string, what: string): void {
    console.log(`${new Date().toLocaleTimeString('en-GB')}  ${who.padEnd(30)} ${what}`);
  }
}
