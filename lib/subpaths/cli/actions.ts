import { hostname, userInfo } from 'node:os';
import { escaped } from '../../errors/show.js';
import { targetText } from '../dashboard/filter-text.js';
import { ageOf, given, numberOf, type Command } from './context.js';
import { DONE } from './failure.js';
import { cut, right, spare, wrapped, type Cell } from './table.js';

/** Both parts together fit into the longest actor, whatever their characters. */
const NAME_LENGTH = 40;
/** From this width on, there is room for the time in full. */
const WIDE = 120;
/** Other columns are cut before the jobs have less room than this. */
const LEAST_WHICH = 20;

/** The actor of the command: the user of the system who runs it. */
export function actorOf(): string {
  return `cli:${clean(userName())}@${clean(hostname())}`;
}

function clean(name: string): string {
  return escaped(name.slice(0, NAME_LENGTH)).slice(0, NAME_LENGTH);
}

function userName(): string {
  try {
    return userInfo().username;
  } catch {
    // In a container, the user often has a number and no name.
    return `uid ${process.getuid?.()}`;
  }
}

export const actions: Command = {
  name: 'actions',
  usage: '[queue]',
  about: 'lists who did what, the newest first',
  words: [0, 1],
  options: {
    actor: { type: 'string', about: 'only what this person or program did' },
    limit: { type: 'string', about: 'the most actions to list (default: 50)' },
    cursor: { type: 'string', about: 'of the page before' },
  },
  async run(context) {
    const { inspector, words, print } = context;
    const [queue] = words;
    const page = await inspector.actions({
      ...(queue !== undefined && { queue }),
      ...given(context, 'actor', 'cursor'),
      limit: numberOf(context, 'limit', 50),
    });
    const isWide = (print.screen.width ?? Infinity) >= WIDE;
    const rows = page.actions.map(({ at, actor, action, queue: of, target, count, result }): Cell[] => [
      isWide ? at.toISOString() : ageOf(at, inspector),
      actor,
      action,
      of ?? '-',
      count ?? '-',
      result === 'ok' || result === 'started' ? result : { text: result, style: 'red' },
      target === '' ? '-' : targetText(target).replaceAll('\u00a0', ' '),
    ]);
    const columns = [
      isWide ? { title: 'AT' } : right('AGE'),
      cut('ACTOR'),
      cut('ACTION'),
      spare(2, cut('QUEUE')),
      spare(1, right('COUNT')),
      cut('RESULT'),
      // The filter of an act on many jobs is a sentence.
      wrapped('WHICH', LEAST_WHICH),
    ];
    print.rows(page, columns, rows, 'no actions are recorded');
    if (page.cursor !== null) print.line(`more: --cursor ${page.cursor}`);
    return DONE;
  },
};
