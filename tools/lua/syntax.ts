import type { Chunk, Expression, FunctionDeclaration, Node, Statement } from 'luaparse';

/** A name that a file of Lua declares, and how it is used. */
interface Declaration {
  readonly name: string;
  readonly line: number;
  readonly kind: 'local' | 'function' | 'parameter' | 'loop';
  /** An outer declaration with the same name. */
  readonly shadows: Declaration | undefined;
  reads: number;
  writes: number;
}

/** A statement within a list of statements. */
export interface Step {
  readonly block: readonly Statement[];
  readonly index: number;
}

/** A name that the file does not declare before it is used. */
export interface FreeName {
  readonly name: string;
  readonly line: number;
  readonly isWrite: boolean;
  /** The statement of the file itself, as deep within branches as it goes without entering a function or a loop. */
  readonly path: readonly Step[];
}

export interface Names {
  readonly declarations: readonly Declaration[];
  readonly free: readonly FreeName[];
}

type Scope = Map<string, Declaration>;
type NewName = readonly [name: string, line: number, kind: Declaration['kind']];

export function lineOf(node: Node): number {
  return node.loc!.start.line;
}

/** Every declaration of a chunk and every name that it uses from outside, by the scoping rules of Lua 5.1. */
export function namesIn(chunk: Chunk): Names {
  return new Walk().run(chunk);
}

class Walk {
  private readonly scopes: Scope[] = [];
  private readonly declarations: Declaration[] = [];
  private readonly free: FreeName[] = [];
  private path: readonly Step[] = [];
  /** Number of open functions and loops. Inside of them `path` gets no more steps. */
  private depth = 0;

  run(chunk: Chunk): Names {
    this.block(chunk.body, []);
    return { declarations: this.declarations, free: this.free };
  }

  private block(body: readonly Statement[], declared: readonly NewName[], last?: Expression): void {
    this.scopes.push(new Map());
    for (const [name, line, kind] of declared) this.declare(name, line, kind);
    const { path } = this;
    body.forEach((statement, index) => {
      if (this.depth === 0) this.path = [...path, { block: body, index }];
      this.statement(statement);
    });
    this.path = path;
    // `until` sees the locals of the loop.
    if (last) this.expression(last);
    this.scopes.pop();
  }

  private inside(work: () => void): void {
    this.depth += 1;
    work();
    this.depth -= 1;
  }

  private statement(node: Statement): void {
    switch (node.type) {
      case 'LocalStatement':
        for (const value of node.init) this.expression(value);
        for (const variable of node.variables) this.declare(variable.name, lineOf(variable), 'local');
        return;
      case 'AssignmentStatement':
        for (const value of node.init) this.expression(value);
        for (const target of node.variables) {
          if (target.type === 'Identifier') this.mention(target.name, lineOf(target), true);
          else this.expression(target);
        }
        return;
      case 'FunctionDeclaration':
        if (!node.isLocal || node.identifier?.type !== 'Identifier')
          throw new Error(`line ${lineOf(node)}: a function that is not local`);
        // A local function may call itself.
        this.declare(node.identifier.name, lineOf(node), 'function');
        return this.functionBody(node);
      case 'IfStatement':
        for (const clause of node.clauses) {
          if (clause.type !== 'ElseClause') this.expression(clause.condition);
          this.block(clause.body, []);
        }
        return;
      case 'WhileStatement':
        this.expression(node.condition);
        return this.inside(() => this.block(node.body, []));
      case 'RepeatStatement':
        return this.inside(() => this.block(node.body, [], node.condition));
      case 'DoStatement':
        return this.block(node.body, []);
      case 'ForNumericStatement':
        for (const bound of [node.start, node.end, node.step]) if (bound) this.expression(bound);
        return this.inside(() => this.block(node.body, [[node.variable.name, lineOf(node), 'loop']]));
      case 'ForGenericStatement':
        for (const iterator of node.iterators) this.expression(iterator);
        return this.inside(() =>
          this.block(
            node.body,
            node.variables.map((variable) => [variable.name, lineOf(variable), 'loop'] as const),
          ),
        );
      case 'CallStatement':
        return this.expression(node.expression);
      case 'ReturnStatement':
        for (const value of node.arguments) this.expression(value);
        return;
      case 'BreakStatement':
        return;
      default:
        throw new Error(`line ${lineOf(node as Node)}: ${(node as Node).type} is not expected`);
    }
  }

  private functionBody(node: FunctionDeclaration): void {
    const parameters = node.parameters.flatMap((parameter) =>
      parameter.type === 'Identifier' ? [[parameter.name, lineOf(parameter), 'parameter'] as const] : [],
    );
    this.inside(() => this.block(node.body, parameters));
  }

  private expression(node: Expression): void {
    switch (node.type) {
      case 'Identifier':
        return this.mention(node.name, lineOf(node), false);
      case 'FunctionDeclaration':
        return this.functionBody(node);
      case 'TableConstructorExpression':
        for (const field of node.fields) {
          if (field.type === 'TableKey') this.expression(field.key);
          this.expression(field.value);
        }
        return;
      case 'BinaryExpression':
      case 'LogicalExpression':
        this.expression(node.left);
        return this.expression(node.right);
      case 'UnaryExpression':
        return this.expression(node.argument);
      case 'MemberExpression':
        return this.expression(node.base);
      case 'IndexExpression':
        this.expression(node.base);
        return this.expression(node.index);
      case 'CallExpression':
        this.expression(node.base);
        for (const argument of node.arguments) this.expression(argument);
        return;
      default:
        // Literals contain no names.
        if (!node.type.endsWith('Literal'))
          throw new Error(`line ${lineOf(node)}: ${node.type} is not expected`);
    }
  }

  private declare(name: string, line: number, kind: Declaration['kind']): void {
    const shadows = this.find(name);
    const declaration: Declaration = { name, line, kind, shadows, reads: 0, writes: 0 };
    this.declarations.push(declaration);
    this.scopes.at(-1)!.set(name, declaration);
  }

  private mention(name: string, line: number, isWrite: boolean): void {
    const declaration = this.find(name);
    if (!declaration) this.free.push({ name, line, isWrite, path: this.path });
    else if (isWrite) declaration.writes += 1;
    else declaration.reads += 1;
  }

  private find(name: string): Declaration | undefined {
    for (let i = this.scopes.length - 1; i >= 0; i--) {
      const found = this.scopes[i]!.get(name);
      if (found) return found;
    }
    return undefined;
  }
}
