import { signal } from '@preact/signals';
import { frozen, go, refreshes, shortcuts, theme } from './state.js';

/** Keyboard shortcuts. They are off while a person types, and while a dialog is open. */

export const isHelpOpen = signal(false);

/** The pages with a link: path, title, and the key after `g`. */
export const PAGES = [
  ['', 'Overview', 'o'],
  ['queues', 'Queues', 'q'],
  ['find', 'Find', 'f'],
  ['dead', 'Dead', 'd'],
  ['schedules', 'Schedules', 's'],
  ['workers', 'Workers', 'w'],
  ['live', 'Live', 'l'],
  ['redis', 'Redis', 'r'],
  ['actions', 'Actions', 'a'],
] as const;

export const SHORTCUTS: readonly (readonly [keys: string, what: string])[] = [
  ...PAGES.map(([, title, key]) => [`g ${key}`, title] as const),
  ['Ctrl-K', 'Find a queue or a job'],
  ['/', 'Search'],
  ['j, k', 'Next row, row before'],
  ['Enter', 'Open the row'],
  ['x', 'Select the row'],
  ['e', 'Edit the job'],
  ['r', 'Load again'],
  ['.', 'Freeze, go on'],
  ['t', 'Light, dark or as the system'],
  ['?', 'These shortcuts'],
];

let isGoing = false;
let goingTimer: ReturnType<typeof setTimeout> | undefined;

const ACTS: Readonly<Record<string, () => void>> = {
  '/': () => document.querySelector<HTMLElement>('[data-search]')?.focus(),
  r: () => (refreshes.value += 1),
  t: () => theme.next(),
  '.': () => (frozen.value = !frozen.value),
  '?': () => (isHelpOpen.value = !isHelpOpen.value),
  j: () => move(1),
  k: () => move(-1),
  x: () => currentRow()?.querySelector<HTMLInputElement>('[data-pick]')?.click(),
  e: () => document.querySelector<HTMLElement>('[data-edit]')?.click(),
};

document.addEventListener('keydown', (event) => {
  const target = event.target as HTMLElement;
  const isTyping =
    /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName) && (target as HTMLInputElement).type !== 'checkbox';
  if (event.key === 'Escape' && isTyping && !target.closest('dialog, [popover]')) target.blur();
  if (event.key === 'Escape') isHelpOpen.value = false;
  if (shortcuts.value.value === 'off') return;
  if ((event.ctrlKey || event.metaKey) && event.key === 'k' && !document.querySelector('dialog[open]')) {
    event.preventDefault();
    return go('find');
  }
  if (isTyping || event.ctrlKey || event.metaKey || event.altKey || document.querySelector('dialog[open]'))
    return;
  const place = PAGES.find(([, , key]) => key === event.key);
  if (isGoing && place !== undefined) {
    isGoing = false;
    go(place[0] || './');
  } else if (event.key === 'g') {
    isGoing = true;
    clearTimeout(goingTimer);
    goingTimer = setTimeout(() => (isGoing = false), 1_000);
  } else if (ACTS[event.key]) {
    ACTS[event.key]!();
  } else return;
  event.preventDefault();
});

const rows = () => [...document.querySelectorAll<HTMLElement>('[data-row]')];
const currentRow = () => document.activeElement?.closest<HTMLElement>('[data-row]');

function move(step: number): void {
  const all = rows();
  const current = currentRow();
  const at = current ? all.indexOf(current) + step : step > 0 ? 0 : all.length - 1;
  // The head of a row names what it is about; other links lead to what is around it.
  const [first] = ['th a[href]', 'a[href]'].flatMap((to) => all[at]?.querySelector<HTMLElement>(to) ?? []);
  first?.focus();
}
