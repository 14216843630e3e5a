#!/usr/bin/env node
import { main } from './cli/main.js';

// Whatever may still be open, such as a name that is being looked up: the command is at its end.
process.exit(await main(process.argv.slice(2)));
