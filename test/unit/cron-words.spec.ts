import { expect, it } from 'vitest';
import { cronInWords } from '#lib/schedule/words.js';

it.each([
  ['15 9 * * *', 'every day at 09:15'],
  ['0 7 * * MON-FRI', 'Monday to Friday at 07:00'],
  ['0 7 * * 1-5', 'Monday to Friday at 07:00'],
  ['30 22 * * 0,sat', 'Sunday and Saturday at 22:30'],
  ['0 7 * * 7', 'Sunday at 07:00'],
  ['0 7,19 * * *', 'every day at 07:00 and 19:00'],
  ['0 0 1 * *', 'on day 1 of every month at 00:00'],
  ['0 0 1,15 1,7 *', 'on day 1 and 15 of January and July at 00:00'],
  ['0 6 1-7 * *', 'on days 1 to 7 of every month at 06:00'],
  ['0 6 L * *', 'on the last day of every month at 06:00'],
  ['0 6 * * MON#1', 'on the first Monday of the month at 06:00'],
  ['0 6 * * FRI#L', 'on the last Friday of the month at 06:00'],
  ['0 6 * JUN-AUG MON', 'Monday in June to August at 06:00'],
  ['* * * * *', 'every minute'],
  ['*/5 * * * *', 'every 5 min'],
  ['0/15 9-17 * * MON-FRI', 'every 15 min from 09:00 to 17:59, Monday to Friday'],
  ['0 9-17 * * *', 'every hour from 09:00 to 17:00'],
  ['20 * * * *', 'every hour at minute 20'],
  ['0,30 * * * *', 'every hour at minute 0 and 30'],
  ['0 */2 * * *', 'every 2 hours'],
  ['5 */6 * * *', 'every 6 hours at minute 5'],
  ['0 15 9 * * *', 'every day at 09:15'],
  ['@daily', 'every day at 00:00'],
  ['@Weekly', 'Sunday at 00:00'],
])('%s is %s', (cron, words) => {
  expect(cronInWords(cron)).toBe(words);
});

it.each([
  ['*/7 * * * *', 'a step that does not divide an hour'],
  ['0 0 1 * MON', 'both kinds of days'],
  ['10 15 9 * * *', 'seconds'],
  ['0 1,2,3,4,5 * * *', 'many times'],
  ['0 0 15W * *', 'a weekday near a day'],
  ['5/15 * * * *', 'a step from another minute'],
  ['0 0 * * 9', 'a day that does not exist'],
  ['x', 'no expression'],
  ['', 'nothing'],
])('%s has no sentence: %s', (cron) => {
  expect(cronInWords(cron)).toBeNull();
});
