import { computed, effect, signal } from '@preact/signals';
import { encodeSegment } from '../../lib/subpaths/dashboard/segments.js';
import type { MeView } from '../../lib/subpaths/dashboard/views.js';

/** State that all pages share: the address, the person, the form of times, and messages. */

/** Address of the first page. It is read only once, because a relative base would change with the address. */
export const ROOT = document.baseURI;
const base = document.querySelector('base');
if (base) base.href = ROOT;
const rootPath = new URL(ROOT).pathname;

interface Settings {
  readonly title: string;
  readonly environment: string;
  readonly readOnly: boolean;
}
export const settings = JSON.parse(document.getElementById('settings')!.textContent) as Settings;

export const me = signal<MeView | null>(null);
/** The subject of the open page, for the title of the tab; null: the title has only the name of the page. */
export const subject = signal<string | null>(null);
/** Errors of the calls of the open page that get no answer now, by path. */
export const troubles = signal<ReadonlyMap<string, string>>(new Map());
/** When the first of these calls failed. It does not change while a person opens other pages. */
export const troubleSince = signal<number | null>(null);
/** While this is true, nothing is loaded automatically. */
export const frozen = signal(false);
/** Increased to load all data of the page again. */
export const refreshes = signal(0);

interface Toast {
  readonly text: string;
  readonly isBad: boolean;
}
export const toast = signal<Toast | null>(null);
let toastTimer: ReturnType<typeof setTimeout> | undefined;
export function say(text: string, isBad = false): void {
  toast.value = { text, isBad };
  clearTimeout(toastTimer);
  toastTimer = setTimeout(() => (toast.value = null), isBad ? 12_000 : 5_000);
}

/** The open address. `path` is its part below the first page. */
const address = signal(location.href);
export const path = computed(() => {
  const { pathname } = new URL(address.value);
  return pathname.startsWith(rootPath) ? pathname.slice(rootPath.length) : '';
});
export const query = computed(() => new URL(address.value).searchParams);
window.addEventListener('popstate', () => (address.value = location.href));

export function go(href: string, replace = false): void {
  const url = new URL(href, ROOT).href;
  if (replace) history.replaceState(null, '', url);
  else history.pushState(null, '', url);
  address.value = url;
  if (!replace) window.scrollTo(0, 0);
}

/** Follows links inside the dashboard without loading the document again. */
document.addEventListener('click', (event) => {
  const link = (event.target as Element).closest?.('a[href]');
  if (
    !link ||
    event.defaultPrevented ||
    event.button !== 0 ||
    event.metaKey ||
    event.ctrlKey ||
    event.shiftKey
  )
    return;
  const { href, target } = link as HTMLAnchorElement;
  if (target || !href.startsWith(ROOT) || href.includes('#')) return;
  event.preventDefault();
  go(href);
});

/** A path with a query; empty values are left out. */
export function href(to: string, params: Readonly<Record<string, string | null | undefined>> = {}): string {
  const given = Object.entries(params).filter(
    ([, value]) => value !== null && value !== undefined && value !== '',
  );
  const text = new URLSearchParams(given as [string, string][]).toString();
  return text === '' ? to : `${to}?${text}`;
}

export const queuePath = (queue: string) => `queues/${encodeSegment(queue)}`;
const within = (kind: string) => (queue: string, name: string) =>
  `${queuePath(queue)}/${kind}/${encodeSegment(name)}`;
export const jobPath = within('jobs');
export const groupPath = within('groups');
export const schedulePath = within('schedules');

/** A setting that this browser remembers. */
function remembered<T extends string>(name: string, choices: readonly T[]) {
  const key = `godwit:${name}`;
  let stored: string | null = null;
  try {
    stored = localStorage.getItem(key);
  } catch {
    // The browser does not allow storage.
  }
  const value = signal<T>(choices.includes(stored as T) ? (stored as T) : choices[0]!);
  effect(() => {
    try {
      localStorage.setItem(key, value.value);
    } catch {
      // The same.
    }
  });
  // Another tab has changed it.
  window.addEventListener('storage', ({ key: changed, newValue }) => {
    if (changed === key && choices.includes(newValue as T)) value.value = newValue as T;
  });
  return { value, next: () => (value.value = choices[(choices.indexOf(value.value) + 1) % choices.length]!) };
}

export const theme = remembered('theme', ['system', 'light', 'dark'] as const);
export const zone = remembered('zone', ['local', 'UTC'] as const);
/** The order of the keys in JSON. */
export const keyOrder = remembered('keys', ['stored', 'sorted'] as const);
/** How often pages read again. `auto`: each page as often as suits its cost. */
export const pace = remembered('pace', ['auto', '1 s', '2 s', '5 s', '15 s', '30 s', '60 s', 'off'] as const);
/** Whether the keyboard has shortcuts. Speech input may type letters that are not meant as shortcuts. */
export const shortcuts = remembered('shortcuts', ['on', 'off'] as const);
effect(() => {
  document.documentElement.dataset['theme'] = theme.value.value;
});

/** The clock of Redis minus that of this browser. */
const offset = computed(() => (me.value ? me.value.now - loadedAt : 0));
let loadedAt = Date.now();
export function setMe(value: MeView): void {
  loadedAt = Date.now();
  me.value = value;
  now.value = value.now;
}
/** The time of the clock of Redis, updated once a second. */
export const now = signal(Date.now());
setInterval(() => {
  if (!document.hidden) now.value = Date.now() + offset.value;
}, 1_000);
