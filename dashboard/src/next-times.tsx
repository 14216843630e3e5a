import { moment } from './format.js';

/** Times in the zone of the page, in UTC, and in the zone of the schedule. */
export function NextTimes({ times, zone }: { times: readonly number[]; zone: unknown }) {
  return (
    <ol class="plain">
      {times.map((time) => (
        <li key={time}>
          {moment(time)}{' '}
          <span class="faint">{new Date(time).toISOString().slice(0, 16).replace('T', ' ')} UTC</span>
          {inZone(time, zone)}
        </li>
      ))}
    </ol>
  );
}

function inZone(time: number, zone: unknown): string {
  if (typeof zone !== 'string' || zone === 'UTC' || zone === '') return '';
  try {
    return ` · ${new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'short', timeZone: zone }).format(time)} ${zone}`;
  } catch {
    return '';
  }
}
