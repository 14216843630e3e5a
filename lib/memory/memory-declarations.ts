import type {
  DeclarationVerbs,
  DeclareAnswer,
  DeclareCall,
  Declaration,
  RenewAnswer,
} from '../engine/declaration-verbs.js';
import type { Verbs } from './verbs.js';

export class MemoryDeclarations implements DeclarationVerbs {
  constructor(private readonly verbs: Verbs) {}

  declare(queue: string, _call: DeclareCall): Promise<DeclareAnswer> {
    return this.verbs.on('declare', queue, () => ({ outcomes: [], removed: [], idle: true }));
  }

  renew(queue: string, _declaration: Declaration): Promise<RenewAnswer> {
    return this.verbs.on('renew', queue, () => ({ kind: 'unknown' as const }));
  }

  withdraw(queue: string, _declaration: Declaration): Promise<void> {
    return this.verbs.on('withdraw', queue, () => undefined);
  }
}
