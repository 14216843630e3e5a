import type {
  Declaration,
  DeclarationVerbs,
  DeclareAnswer,
  DeclareCall,
  RenewAnswer,
} from '../contract/declaration-verbs.js';
import type { RedisStore } from './redis-store.js';
import type { Value } from './script.js';
import { declare } from './scripts/declare.js';
import { renew } from './scripts/renew.js';
import { withdraw } from './scripts/withdraw.js';

/** Declarations on Redis: one script each. */
export class RedisDeclarations implements DeclarationVerbs {
  constructor(private readonly store: RedisStore) {}

  declare(queue: string, call: DeclareCall): Promise<DeclareAnswer> {
    const { owner, ttlMs, ids } = call;
    const puts = call.puts.flatMap(({ id, revision, record, nextAt }): Value[] =>
      nextAt === 'keep' ? [id, revision, record, 1, -1] : [id, revision, record, 0, nextAt ?? -1],
    );
    const args = { declaration: textOf(call), owner, ids: ids.join('\n'), ttlMs };
    return this.store.run(declare, this.keys(queue), args, { puts });
  }

  renew(queue: string, declaration: Declaration): Promise<RenewAnswer> {
    const { owner, ttlMs } = declaration;
    return this.store.run(renew, this.keys(queue), { declaration: textOf(declaration), owner, ttlMs });
  }

  async withdraw(queue: string, declaration: Declaration): Promise<void> {
    await this.store.run(withdraw, this.keys(queue), { declaration: textOf(declaration) });
  }

  private keys(queue: string) {
    return this.store.keysOf(queue).fixed;
  }
}

/** As the scripts take it apart: no word in it holds a blank. */
function textOf({ process, owner, set, ttlMs }: Declaration): string {
  return `${process} ${ttlMs} ${owner}:${set}`;
}
