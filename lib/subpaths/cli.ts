#!/usr/bin/env node
import { logTo } from '../contract/log.js';
import { main } from './cli/main.js';
import { standardOutput } from './cli/output.js';

const line = (text: unknown) => standardOutput().complain('GODWIT_WARNING', String(text));
logTo({ debug: () => undefined, log: line, warn: line, error: line });

// Exit even if something is still open, such as a DNS lookup: the command has ended.
void main(process.argv.slice(2))
  .then((code) => standardOutput().finish(code))
  .then((code) => process.exit(code));
