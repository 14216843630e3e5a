import type { Signal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import type { MeView } from '../../lib/subpaths/dashboard/views.js';
import { isHelpOpen, PAGES, SHORTCUTS } from './keys.js';
import { frozen, me, pace, path, refreshes, settings, shortcuts, theme, zone } from './state.js';
import { useCurrentInView } from './widgets.js';

/** The bar at the top: the pages, and what a person can set. */

type Page = (typeof PAGES)[number][0];

/** Whether this person may see the page. */
function isFor(page: Page, person: MeView | null): boolean {
  if (page === 'actions') return person?.rights.includes('read-actions') === true;
  return page !== 'redis' || person?.canSeeRedis === true;
}

/** @param page the open page. */
export function Header({ page }: { page: Page | undefined }) {
  const links = useCurrentInView(`${path.value} ${me.value?.rights.length}`);
  return (
    <header class="top">
      <a class="brand" href="./" title={settings.title}>
        {settings.title}
      </a>
      {settings.environment && <span class="badge env">{settings.environment}</span>}
      {settings.readOnly && <span class="badge">read-only</span>}
      <nav aria-label="Pages" ref={links}>
        {PAGES.filter(([to]) => isFor(to, me.value)).map(([to, text]) => (
          <a key={to} href={to || './'} {...(to === page && { 'aria-current': 'page' as const })}>
            {text}
          </a>
        ))}
      </nav>
      <div class="tools">
        <button
          type="button"
          class="small"
          title={frozen.value ? 'Go on (.)' : 'Freeze (.)'}
          aria-pressed={frozen.value}
          onClick={() => (frozen.value = !frozen.value)}
        >
          <Icon path={frozen.value ? 'M4 2l9 6-9 6z' : 'M3 2h3.5v12H3zM9.5 2H13v12H9.5z'} />
          <span>{frozen.value ? 'Frozen' : 'Freeze'}</span>
        </button>
        <button type="button" class="small" title="Load again (r)" onClick={() => (refreshes.value += 1)}>
          <Icon path="M8 2a6 6 0 1 0 5.7 7.9l-1.9-.6A4 4 0 1 1 8 4c1.1 0 2 .4 2.7 1.1L8.8 7H14V1.8l-1.9 1.9A6 6 0 0 0 8 2z" />
          <span>Reload</span>
        </button>
        <Settings />
      </div>
    </header>
  );
}

/** On a narrow screen it stands for the text next to it. */
function Icon({ path: shape }: { path: string }) {
  return (
    <svg viewBox="0 0 16 16" width="12" height="12" fill="currentColor" aria-hidden="true">
      <path d={shape} />
    </svg>
  );
}

const PACES = {
  auto: 'every few seconds',
  '1 s': 'every second',
  '2 s': 'every 2 seconds',
  '5 s': 'every 5 seconds',
  '15 s': 'every 15 seconds',
  '30 s': 'every 30 seconds',
  '60 s': 'every minute',
  off: 'when I reload',
} as const;
const ZONES = { local: 'local time', UTC: 'UTC' } as const;
const THEMES = { system: 'as the system', light: 'light', dark: 'dark' } as const;

function Settings() {
  return (
    <>
      <button type="button" class="small" popovertarget="settings-menu">
        Settings
      </button>
      <div id="settings-menu" class="menu" popover="auto" role="group" aria-label="Settings">
        <Setting
          label="Pages load again"
          of={pace.value}
          choices={PACES}
          // The next read may be due only after the old time.
          onChange={() => (refreshes.value += 1)}
        />
        <Setting label="Times" of={zone.value} choices={ZONES} />
        <Setting label="Theme" of={theme.value} choices={THEMES} />
        <button
          type="button"
          popovertarget="settings-menu"
          popovertargetaction="hide"
          onClick={() => (isHelpOpen.value = true)}
        >
          Shortcuts
        </button>
        {me.value?.actor && <p class="faint">Actions are recorded as {me.value.actor}.</p>}
      </div>
    </>
  );
}

interface SettingProps<T extends string> {
  label: string;
  of: Signal<T>;
  choices: Readonly<Record<T, string>>;
  onChange?: () => void;
}

function Setting<T extends string>({ label, of, choices, onChange }: SettingProps<T>) {
  return (
    <label class="field">
      <span>{label}</span>
      <select
        value={of.value}
        onChange={(event) => {
          of.value = event.currentTarget.value as T;
          onChange?.();
        }}
      >
        {Object.entries<string>(choices).map(([value, text]) => (
          <option key={value} value={value}>
            {text}
          </option>
        ))}
      </select>
    </label>
  );
}

export function Help() {
  const ref = useRef<HTMLDialogElement>(null);
  const isOpen = isHelpOpen.value;
  useEffect(() => {
    if (isOpen) ref.current?.showModal();
    else ref.current?.close();
  }, [isOpen]);
  return (
    <dialog ref={ref} class="help" aria-labelledby="help-title" onClose={() => (isHelpOpen.value = false)}>
      {isOpen && <Shortcuts />}
    </dialog>
  );
}

function Shortcuts() {
  return (
    <>
      <h2 id="help-title">Shortcuts</h2>
      <dl>
        {SHORTCUTS.map(([keys, what]) => (
          <div key={keys}>
            <dt>
              <kbd>{keys}</kbd>
            </dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
      <p>
        <label>
          <input type="checkbox" checked={shortcuts.value.value === 'on'} onChange={() => shortcuts.next()} />{' '}
          Use these shortcuts
        </label>
      </p>
      <div class="row end">
        <button type="button" onClick={() => (isHelpOpen.value = false)}>
          Close
        </button>
      </div>
    </>
  );
}
