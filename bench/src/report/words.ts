/** A share with its sign: −3 %. */
export function signedPercent(share: number): string {
  const whole = Math.round(share * 100);
  return `${whole < 0 ? '−' : whole > 0 ? '+' : '±'}${Math.abs(whole).toLocaleString('en')} %`;
}

/** A slope: two digits behind the point, and a real minus. */
export function short(value: number): string {
  const text = Math.abs(value).toFixed(2);
  return value < 0 && text !== '0.00' ? `−${text}` : text;
}

/** 1,000 as 1k, and of bytes 1,024 as 1 KiB. */
export function sizeLabel(size: number, unit?: 'bytes'): string {
  const [step, names] = unit === 'bytes' ? [1_024, [' B', ' KiB', ' MiB']] : [1_000, ['', 'k', 'M']];
  let at = 0;
  let value = size;
  while (value >= step && at < names.length - 1) {
    value /= step;
    at += 1;
  }
  return `${Number(value.toPrecision(3))}${names[at]}`;
}

/** Two or three significant digits, and no decimals above a hundred: a figure beside a bar. */
export function brief(value: number): string {
  if (Number.isInteger(value) || value >= 100) return Math.round(value).toLocaleString('en');
  return value.toPrecision(value >= 10 ? 3 : 2);
}
