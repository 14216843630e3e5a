import type { Point } from '../measure/fit.js';

/** The content of a panel, independent of how it is drawn. */
export interface Caption {
  readonly title: string;
  /** Unit and which way is better, under the title. */
  readonly subtitle: string;
}

/** A bar per system. */
export interface BarPanel extends Caption {
  readonly bars: readonly Bar[];
}

export interface Bar {
  readonly name: string;
  readonly value: number;
  /** The bar continues to here in a lighter colour: the 99th percentile behind a median. */
  readonly tail?: number;
  /** Text after the bar. */
  readonly label: string;
  /** The system that the page is about. */
  readonly own: boolean;
}

/** A curve per system over the size of something, both axes logarithmic. */
export interface CurvePanel extends Caption {
  readonly xTitle: string;
  readonly xUnit?: 'bytes';
  readonly xBase: number;
  readonly curves: readonly PlottedCurve[];
}

export interface PlottedCurve {
  readonly name: string;
  readonly own: boolean;
  readonly points: readonly Point[];
  /** Ends of the fitted line. */
  readonly fitted?: readonly [Point, Point];
  /** Text of the legend. */
  readonly label: string;
}

/** How many times as good as each peer, one line per scenario. */
export interface RatioPanel extends Caption {
  readonly peers: readonly string[];
  readonly lines: readonly { readonly name: string; readonly ratios: Readonly<Record<string, number>> }[];
}
