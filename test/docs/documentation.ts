import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';
import {
  Application,
  LogLevel,
  Logger,
  ReflectionKind,
  type Comment,
  type DeclarationReflection,
  type ProjectReflection,
} from 'typedoc';
import config from '../../typedoc.config.mjs';
import { ROOT } from '../support/sources.js';

/** What TypeDoc makes of the library, with all its warnings. */
export interface Documentation {
  readonly project: ProjectReflection;
  readonly complaints: readonly string[];
}

class Complaints extends Logger {
  readonly found: string[] = [];

  constructor() {
    super();
    this.level = LogLevel.Warn;
  }

  override log(message: string, level: LogLevel): void {
    if (level >= LogLevel.Warn) this.found.push(message);
  }
}

/** Reads the documentation as `npm run docs` does, and writes its pages into this folder. */
export async function document(out: string): Promise<Documentation> {
  // The compiler has checked the types before. It would be the slowest part.
  const app = await Application.bootstrapWithPlugins({
    ...config,
    out,
    skipErrorChecking: true,
    logLevel: 'Warn',
  });
  const complaints = new Complaints();
  app.logger = complaints;
  const project = await app.convert();
  if (!project) throw new Error(`TypeDoc reads nothing: ${complaints.found.join('\n')}`);
  app.validate(project);
  await app.generateOutputs(project);
  return { project, complaints: complaints.found };
}

/** A public name with its documentation, once for each of its overloads. */
export interface Described {
  /** `Queue.add`. */
  readonly name: string;
  readonly reflection: DeclarationReflection;
  readonly comments: readonly Comment[];
}

/** Public declarations of these kinds, without those inherited from other packages. */
export function described(project: ProjectReflection, kinds: ReflectionKind): Described[] {
  return (project.getReflectionsByKind(kinds) as DeclarationReflection[])
    .filter((reflection) => !reflection.inheritedFrom && !reflection.getFullName().includes('__type'))
    .map((reflection) => ({
      name: reflection.getFriendlyFullName(),
      reflection,
      comments: [
        reflection.comment,
        reflection.getSignature?.comment,
        ...(reflection.signatures ?? []).map((signature) => signature.comment),
      ].filter((comment) => comment !== undefined),
    }));
}

/** The texts of one tag, of all overloads, each once. */
export function tagged({ comments }: Pick<Described, 'comments'>, tag: `@${string}`): string[] {
  const texts = comments.flatMap((comment) =>
    comment
      .getTags(tag)
      .map(({ name, content }) => [name, ...content.map(({ text }) => text)].filter(Boolean).join(' ')),
  );
  return [...new Set(texts)];
}

/** The text before the tags. */
export function summary({ comments }: Pick<Described, 'comments'>): string {
  return comments.flatMap((comment) => comment.summary.map(({ text }) => text)).join('');
}

/** Public names, as an import writes them, marked if they are types. The value is the path of the import. */
export function publicNames(
  project: ProjectReflection,
  packageName: string,
): Map<string, { name: string; from: string }> {
  const found = new Map<string, { name: string; from: string }>();
  const modules = project.getReflectionsByKind(ReflectionKind.Module) as DeclarationReflection[];
  for (const entry of modules.length > 0 ? modules : [project]) {
    const from = entry === project ? packageName : entry.name;
    for (const { name, kind } of entry.children ?? []) {
      if (found.has(name) && from !== packageName) continue;
      const isType = (kind & (ReflectionKind.Interface | ReflectionKind.TypeAlias)) !== 0;
      found.set(name, { name: isType ? `type ${name}` : name, from });
    }
  }
  return found;
}

/** The classes of errors after `throw new` in the body of a function or method. */
export function thrownBy(project: ProjectReflection, reflection: DeclarationReflection): string[] {
  const id = project.getSymbolIdFromReflection(reflection);
  if (!id) return [];
  const text = readFileSync(join(ROOT, id.packagePath), 'utf8');
  const [first, second] = id.qualifiedName.split('.');
  const found = new Set<string>();
  const collect = (node: ts.Node): void => {
    if (ts.isThrowStatement(node) && ts.isNewExpression(node.expression))
      found.add(node.expression.expression.getText());
    ts.forEachChild(node, collect);
  };
  for (const statement of ts.createSourceFile(id.packagePath, text, ts.ScriptTarget.ES2022, true)
    .statements) {
    const isNamed =
      (ts.isFunctionDeclaration(statement) || ts.isClassDeclaration(statement)) &&
      statement.name?.text === first;
    if (!isNamed) continue;
    if (ts.isFunctionDeclaration(statement)) collect(statement);
    else statement.members.filter((member) => member.name?.getText() === second).forEach(collect);
  }
  return [...found];
}

export { ReflectionKind };
