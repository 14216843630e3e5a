// Additions to TypeDoc: errors of @throws link to their pages, and names are grouped by what they are.
import { readFileSync } from 'node:fs';
import { posix } from 'node:path';
import { Comment, CommentTag, Converter, ReflectionKind } from 'typedoc';

const { exports } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'));
/** Maps the path of a file in lib to the path under which users import it. */
const SUBPATHS = new Map(
  Object.entries(exports).map(([path, { types = '' }]) => [types.replace(/^\.\/dist\/|\.d\.ts$/g, ''), path]),
);

/** The groups in the order of the pages. A name that fits no group is listed under its kind. */
const GROUPS = [
  { title: 'Decorators', kinds: ReflectionKind.Function, names: /^[A-Z]/ },
  {
    title: 'Options',
    kinds: ReflectionKind.Interface | ReflectionKind.TypeAlias,
    names: /(Options?|Defaults)$/,
  },
  { title: 'Events', kinds: ReflectionKind.Interface | ReflectionKind.TypeAlias, names: /Event$/ },
  { title: 'Errors', kinds: ReflectionKind.Class, names: /(Error|^Snooze)$/ },
];
export const GROUP_ORDER = [
  'Modules',
  'Classes',
  'Decorators',
  'Functions',
  'Options',
  'Events',
  '*',
  'Errors',
];

/** @param {import('typedoc').Application} app */
export function docsPlugin(app) {
  app.converter.on(Converter.EVENT_RESOLVE_BEGIN, ({ project }) => {
    const classes = new Map(
      project.getReflectionsByKind(ReflectionKind.Class).map((reflection) => [reflection.name, reflection]),
    );
    for (const entry of project.getReflectionsByKind(ReflectionKind.Module)) {
      // As it is imported: `godwit`, `godwit/testing`.
      entry.name = posix.join(project.packageName, SUBPATHS.get(entry.name));
    }
    for (const reflection of Object.values(project.reflections)) {
      group(reflection);
      if (reflection.comment) listErrors(reflection.comment, classes);
    }
  });
}

/** @param {import('typedoc').Reflection} reflection */
function group(reflection) {
  const found = GROUPS.find(({ kinds, names }) => reflection.kindOf(kinds) && names.test(reflection.name));
  if (!found) return;
  reflection.comment ??= new Comment();
  reflection.comment.blockTags.push(new CommentTag('@group', [{ kind: 'text', text: found.title }]));
}

/**
 * All thrown errors in one list.
 *
 * @param {import('typedoc').Comment} comment
 * @param {ReadonlyMap<string, import('typedoc').Reflection>} classes
 */
function listErrors(comment, classes) {
  const tags = comment.getTags('@throws');
  if (tags.length === 0) return;
  const content = tags.flatMap((tag) => [
    { kind: 'text', text: '\n- ' },
    ...linksOf(tag, classes),
    ...tag.content,
  ]);
  comment.removeTags('@throws');
  comment.blockTags.push(new CommentTag('@throws', content));
}

/**
 * @param {import('typedoc').CommentTag} tag
 * @param {ReadonlyMap<string, import('typedoc').Reflection>} classes
 */
function linksOf(tag, classes) {
  const names = tag.typeAnnotation?.match(/\w+/g) ?? [];
  return names.flatMap((name, i) => [
    classes.has(name)
      ? { kind: 'inline-tag', tag: '@link', text: name, target: classes.get(name) }
      : { kind: 'code', text: `\`${name}\`` },
    { kind: 'text', text: i < names.length - 1 ? ', ' : ' ' },
  ]);
}
