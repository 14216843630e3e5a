// Prints the minimal ACL rules of a Redis user for Godwit, like `godwit acl`:
//   node tools/acl.mjs --prefix shop [--role producer] [--cluster] [--redis 7.2]
import { parseArgs } from 'node:util';
import acl from '../dist/subpaths/cli/acl.js';
import { isMain } from './programs.mjs';

export const { aclRules, commandsOf } = acl;

function main(argv) {
  const { values } = parseArgs({
    args: argv,
    options: {
      prefix: { type: 'string', default: 'godwit' },
      role: { type: 'string', default: 'both' },
      cluster: { type: 'boolean', default: false },
      redis: { type: 'string', default: '7.0' },
    },
  });
  if (!['both', 'producer'].includes(values.role))
    throw new Error(`--role is both or producer, not ${values.role}`);
  console.log(`ACL SETUSER ${values.prefix} reset on >secret ${aclRules(values).join(' ')}`);
}

if (isMain(import.meta)) main(process.argv.slice(2));
