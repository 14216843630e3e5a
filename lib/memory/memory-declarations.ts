import type {
  Declaration,
  DeclarationVerbs,
  DeclareAnswer,
  DeclareCall,
  RenewAnswer,
} from '../contract/declaration-verbs.js';
import type { Verbs } from './verbs.js';

/** Declarations in memory. */
export class MemoryDeclarations implements DeclarationVerbs {
  constructor(private readonly verbs: Verbs) {}

  declare(queue: string, call: DeclareCall): Promise<DeclareAnswer> {
    return this.verbs.on('declare', queue, (q) => q.declarations.declare(call, q.now));
  }

  renew(queue: string, declaration: Declaration): Promise<RenewAnswer> {
    return this.verbs.on('renew', queue, (q) => q.declarations.renew(declaration, q.now));
  }

  withdraw(queue: string, declaration: Declaration): Promise<void> {
    return this.verbs.on('withdraw', queue, (q) => q.declarations.withdraw(declaration));
  }
}
