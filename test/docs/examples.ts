import ts from 'typescript';
import { compile } from '../support/page-code.js';

/** An `@example` of a docstring. */
interface Example {
  /** The symbol it is an example of: `Queue.add`. */
  readonly of: string;
  /** As the page shows it, perhaps in a code fence. */
  readonly text: string;
}

/** How to import public names. */
type PublicNames = ReadonlyMap<string, { readonly name: string; readonly from: string }>;

/**
 * Names that examples use without declaring them: of other packages, and of an application. A name that the example
 * declares itself is its own.
 */
const GIVEN: Readonly<Record<string, string>> = {
  ...importing('@nestjs/common', [
    'BadRequestException',
    'ConflictException',
    'Controller',
    'Get',
    'Headers',
    'Inject',
    'Injectable',
    'Module',
    'NotFoundException',
    'ParseIntPipe',
    'PayloadTooLargeException',
    'Post',
    'RequestTimeoutException',
    'Scope',
    'ServiceUnavailableException',
    'Sse',
    'UseGuards',
    'UseInterceptors',
    'UsePipes',
    'ValidationPipe',
    'createParamDecorator',
    'type ExecutionContext',
    'type CanActivate',
  ]),
  ...importing('@nestjs/core', ['NestFactory']),
  ...importing('@nestjs/testing', ['Test']),
  ...importing('@nestjs/terminus', ['HealthCheck', 'HealthCheckService', 'TerminusModule']),
  ...importing('@bull-board/api', ['createBullBoard']),
  ...importing('@bull-board/express', ['ExpressAdapter']),
  ...importing('node:async_hooks', ['AsyncLocalStorage']),
  ...importing('rxjs', ['map', 'filter', 'bufferTime']),
  ...importing('vitest', ['expect', 'it']),
  ...importing('zod', ['z']),
  Observable: `import { Observable } from 'rxjs';`,
  app: `declare const app: import('@nestjs/common').INestApplication;`,
  answer: 'declare const answer: Response;',
  Charge: 'declare class Charge { cents: number }',
  ConfigService:
    'declare class ConfigService { get<T>(key: string, otherwise?: T): T; getOrThrow<T = string>(key: string): T }',
  AdminGuard: 'declare class AdminGuard { canActivate(): boolean }',
  data: 'declare const data: { to: string };',
  AppModule: 'declare class AppModule {}',
  email: `declare const email: import('godwit/testing').TestQueue;`,
  EmailProcessor:
    'declare class EmailProcessor { constructor(mailer: Mailer); welcome(job: unknown): Promise<string> }',
  emails: `declare const emails: import('godwit').Queue;`,
  error: 'declare const error: unknown;',
  event: `declare const event: import('godwit').QueueEvent;`,
  events: `declare const events: import('godwit').QueueEvents;`,
  gauge: 'declare const gauge: { set(values: Record<string, number>): void };',
  id: 'declare const id: string;',
  job: `declare const job: import('godwit').Job<{ to: string; url: string }>;`,
  jobs: `declare const jobs: import('godwit').BulkJob[];`,
  mailer: 'declare const mailer: Mailer;',
  Mailer: 'declare class Mailer { send(to: string, options?: { signal: AbortSignal }): Promise<void> }',
  metrics: `declare const metrics: import('godwit/prometheus').QueueMetrics;`,
  register: 'declare const register: { registerMetric(metric: any): void };',
  moduleRef: `declare const moduleRef: import('@nestjs/core').ModuleRef;`,
  pager: 'declare const pager: { alert(...words: unknown[]): void };',
  producer: `declare const producer: import('godwit').QueueProducer;`,
  signup: 'declare const signup: { register(email: string): Promise<void> };',
  testing: `declare const testing: import('godwit/testing').QueueTesting;`,
  queue: `declare const queue: import('godwit').Queue;`,
  runtime: `declare const runtime: import('godwit').QueueRuntime;`,
  inspector: `declare const inspector: import('godwit').QueueInspector;`,
  Page: 'declare class Page { url: string }',
  to: 'declare const to: string;',
  welcome: `declare const welcome: import('godwit').JobDefinition<{ to: string }>;`,
  WelcomeDto: 'declare class WelcomeDto { to: string }',
};

function importing(from: string, names: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    names.map((name) => [name.replace('type ', ''), `import { ${name} } from '${from}';`]),
  );
}

/** The errors of the compiler, each with the name of the example. `publics` are the names to import from here. */
export function compileExamples(
  examples: readonly Example[],
  publics: PublicNames,
  folder: string,
): string[] {
  const sources = examples.map(({ of, text }) => {
    const module = moduleOf(codeOf(text), publics);
    const lines = module.split('\n');
    return { text: module, at: (line: number) => `${of}, \`${lines[line]!.trim()}\`:` };
  });
  return compile(sources, folder);
}

function codeOf(text: string): string {
  return /^```ts\n([\s\S]*?)\n```/m.exec(text)?.[1] ?? text;
}

/**
 * The example as a module. Members of a class are put into a class, and names that it uses without declaring them
 * come first.
 */
function moduleOf(code: string, publics: PublicNames): string {
  const body = isModule(code) ? code : `export class Example {\n${injected(code)}${code}\n}`;
  const { used, declared } = namesIn(body);
  const lead = [
    ...new Set([...used, ...(used.has('mailer') || used.has('EmailProcessor') ? ['Mailer'] : [])]),
  ]
    .filter((name) => !declared.has(name))
    .flatMap((name) => {
      const found = publics.get(name);
      if (found) return [`import { ${found.name} } from '${found.from}';`];
      return Object.hasOwn(GIVEN, name) ? [GIVEN[name]!] : [];
    });
  return [...lead, body, 'export {};', ''].join('\n');
}

/** Members of `this` that the example uses and does not declare: they were injected. */
function injected(code: string): string {
  const names = new Set([...code.matchAll(/\bthis\.(\w+)/g)].map(([, name]) => name!));
  const missing = [...names].filter((name) => !new RegExp(`(readonly|private) ${name}\\b`).test(code));
  return missing.map((name) => `declare readonly ${name}: any;\n`).join('');
}

function isModule(code: string): boolean {
  const { diagnostics = [] } = ts.transpileModule(code, {
    reportDiagnostics: true,
    compilerOptions: { target: ts.ScriptTarget.ES2022, experimentalDecorators: true },
  });
  return diagnostics.length === 0;
}

function namesIn(code: string): { used: Set<string>; declared: Set<string> } {
  const used = new Set<string>();
  const declared = new Set<string>();
  const visit = (node: ts.Node): void => {
    if (ts.isIdentifier(node)) {
      const { parent } = node;
      const isMember =
        (ts.isPropertyAccessExpression(parent) && parent.name === node) ||
        (ts.isPropertyAssignment(parent) && parent.name === node) ||
        (ts.isMethodDeclaration(parent) && parent.name === node);
      if (!isMember) used.add(node.text);
    }
    const isDeclaration =
      ts.isVariableDeclaration(node) ||
      ts.isClassDeclaration(node) ||
      ts.isFunctionDeclaration(node) ||
      ts.isInterfaceDeclaration(node) ||
      ts.isTypeAliasDeclaration(node) ||
      ts.isImportSpecifier(node);
    if (isDeclaration && node.name && ts.isIdentifier(node.name)) declared.add(node.name.text);
    if (ts.isBindingElement(node) && ts.isIdentifier(node.name)) declared.add(node.name.text);
    ts.forEachChild(node, visit);
  };
  visit(ts.createSourceFile('example.ts', code, ts.ScriptTarget.ES2022, true));
  return { used, declared };
}
