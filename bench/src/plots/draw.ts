import * as echarts from 'echarts';
import type { Caption } from './panels.js';
import type { Theme } from './theme.js';

/** As wide as the text of a README. */
export const WIDTH = 830;
/** Without quotes, which ECharts would put unescaped into an attribute. */
export const FONT = 'system-ui, -apple-system, Segoe UI, Helvetica, Arial, sans-serif';

/** Draws an option of ECharts as a complete SVG: no script, no animation, no fonts of its own. */
export function draw(option: echarts.EChartsOption, height: number, { background, text }: Theme): string {
  const chart = echarts.init(null, null, { renderer: 'svg', ssr: true, width: WIDTH, height });
  try {
    chart.setOption({
      animation: false,
      backgroundColor: background,
      textStyle: { fontFamily: FONT, color: text },
      ...option,
    });
    return `${chart.renderToSVGString()}\n`;
  } finally {
    chart.dispose();
  }
}

/** The position of a panel of small multiples. */
interface Cell {
  readonly left: number;
  readonly top: number;
  readonly width: number;
  readonly height: number;
}

const COLUMNS = 2;
const GAP = 30;
const MARGIN = 12;

/** Two in a row. */
export function cells(
  count: number,
  height: number,
): { readonly at: readonly Cell[]; readonly height: number } {
  const width = (WIDTH - 2 * MARGIN - GAP * (COLUMNS - 1)) / COLUMNS;
  const at = Array.from({ length: count }, (_, i) => ({
    left: MARGIN + (i % COLUMNS) * (width + GAP),
    top: MARGIN + Math.floor(i / COLUMNS) * height,
    width,
    height,
  }));
  return { at, height: MARGIN * 2 + Math.ceil(count / COLUMNS) * height };
}

/** An entry of a legend, in its colour. */
export interface Entry {
  readonly text: string;
  readonly color: string;
  readonly bold: boolean;
}

const LINE = 18;

/** Title and subtitle of a panel. */
export function heading(
  { title, subtitle }: Caption,
  { left, top }: Pick<Cell, 'left' | 'top'>,
  { text, muted }: Theme,
): echarts.TitleComponentOption {
  return {
    // ECharts pads a title by 5 pixels.
    left: left - 5,
    top: top - 5,
    text: title,
    subtext: subtitle,
    itemGap: 4,
    textStyle: { fontSize: 15, fontWeight: 600, color: text, fontFamily: FONT },
    subtextStyle: { fontSize: 13, color: muted, fontFamily: FONT },
  };
}

/**
 * The legend under a heading, two entries per line at fixed positions: without a screen, ECharts cannot measure text.
 */
export function legend(
  entries: readonly Entry[],
  { left, top, width }: Cell,
): echarts.TitleComponentOption[] {
  return entries.map(({ text, color, bold }, i) => ({
    left: left - 5 + (i % COLUMNS) * (width * 0.45),
    top: top + 37 + Math.floor(i / COLUMNS) * LINE,
    text,
    textStyle: { fontSize: 13, fontWeight: bold ? 600 : 400, color, fontFamily: FONT },
  }));
}

export function legendHeight(entries: number): number {
  return Math.ceil(entries / COLUMNS) * LINE;
}
