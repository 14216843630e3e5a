import { Injectable } from '@nestjs/common';

/** Who heard what, line by line on the terminal. */
@Injectable()
export class Journal {
  write(who: string, what: string): void {
    console.log(`${new Date().toLocaleTimeString('en-GB')}  ${who.padEnd(30)} ${what}`);
  }
}
