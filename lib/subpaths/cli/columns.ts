const ASCII = /^[ -~]*$/;
const GRAPHEMES = new Intl.Segmenter(undefined, { granularity: 'grapheme' });
/** Chinese, Japanese and Korean characters, and emoji. A terminal shows each in two columns. */
const WIDE =
  /[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\ua960-\ua97f\uac00-\ud7a3\uf900-\ufaff\ufe10-\ufe19\ufe30-\ufe6f\uff01-\uff60\uffe0-\uffe6\u{17000}-\u{18dff}\u{1b000}-\u{1b2ff}\u{1f200}-\u{1f265}\u{20000}-\u{3fffd}]|\p{Emoji_Presentation}|\p{Extended_Pictographic}\ufe0f/u;
/** All but accents and others that are drawn over the character before them. */
const WITH_COLUMN = /[^\p{Mn}\p{Me}\p{Cf}]/gu;

/** How many columns of a terminal a text takes. It contains no control characters. */
export function columnsOf(text: string): number {
  if (ASCII.test(text)) return text.length;
  let sum = 0;
  for (const { segment } of GRAPHEMES.segment(text)) sum += columnsOfOne(segment);
  return sum;
}

function columnsOfOne(grapheme: string): number {
  return WIDE.test(grapheme) ? 2 : (grapheme.match(WITH_COLUMN)?.length ?? 0);
}

/** A text in at most this many columns. The last of them is `…` if the text is cut. */
export function cutTo(text: string, columns: number): string {
  if (columnsOf(text) <= columns) return text;
  let room = columns - 1;
  let end = 0;
  for (const { segment, index } of GRAPHEMES.segment(text)) {
    room -= columnsOfOne(segment);
    end = index;
    if (room < 0) break;
  }
  return `${text.slice(0, end)}…`;
}

/** A text with spaces up to this many columns. */
export function padTo(text: string, columns: number, align: 'left' | 'right' = 'left'): string {
  const spaces = ' '.repeat(Math.max(0, columns - columnsOf(text)));
  return align === 'right' ? spaces + text : text + spaces;
}
