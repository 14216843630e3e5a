#!/usr/bin/env node
import { main } from './cli/main.js';
import { standardOutput } from './cli/output.js';

// Whatever may still be open, such as a name that is being looked up: the command is at its end.
void main(process.argv.slice(2))
  .then((code) => standardOutput().finish(code))
  .then((code) => process.exit(code));
