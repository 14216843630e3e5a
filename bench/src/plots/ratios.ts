import type { EChartsOption } from 'echarts';
import { draw, FONT, heading, WIDTH } from './draw.js';
import type { RatioPanel } from './panels.js';
import type { Theme } from './theme.js';

const LINE = 24;
const HEAD = 84;
const FOOT = 36;
const NAMES = 390;
/** Not by colour alone. */
const SYMBOLS = ['circle', 'diamond', 'triangle', 'rect'];

/** A line per scenario, a dot per peer, on a logarithmic axis with its middle at 1. */
export function drawRatios({ title, subtitle, peers, lines }: RatioPanel, theme: Theme): string {
  const values = lines.flatMap(({ ratios }) => Object.values(ratios));
  const option: EChartsOption = {
    title: [heading({ title, subtitle }, { left: 12, top: 12 }, theme)],
    legend: {
      left: NAMES,
      top: 50,
      itemWidth: 12,
      itemGap: 26,
      itemHeight: 12,
      data: [...peers],
      selectedMode: false,
      textStyle: { fontSize: 13, color: theme.text, fontFamily: FONT },
    },
    grid: { left: NAMES + 12, top: HEAD, width: WIDTH - NAMES - 40, height: lines.length * LINE },
    xAxis: {
      type: 'log',
      logBase: 10,
      min: Math.min(0.5, ...values),
      max: Math.max(10, ...values) * 1.1,
      axisLabel: {
        fontSize: 12,
        color: theme.muted,
        formatter: (value: number) => `${Number(value.toPrecision(2))} ×`,
      },
      splitLine: { lineStyle: { color: theme.line } },
    },
    yAxis: {
      type: 'category',
      inverse: true,
      data: lines.map(({ name }) => name),
      axisLine: { show: false },
      axisTick: { show: false },
      splitLine: { show: true, lineStyle: { color: theme.line, type: 'dotted' } },
      axisLabel: { fontSize: 12, color: theme.text, interval: 0 },
    },
    series: peers.map((peer, i) => ({
      name: peer,
      type: 'scatter',
      silent: true,
      emphasis: { disabled: true },
      symbol: SYMBOLS[i % SYMBOLS.length]!,
      symbolSize: 11,
      itemStyle: { color: theme.peers[i % theme.peers.length]!, opacity: 0.9 },
      data: lines.flatMap(({ ratios }, line) => (ratios[peer] === undefined ? [] : [[ratios[peer], line]])),
      ...(i === 0 && {
        markLine: {
          silent: true,
          symbol: 'none',
          lineStyle: { color: theme.text, width: 1.5, type: 'solid' as const },
          label: { show: false },
          data: [{ xAxis: 1 }],
        },
      }),
    })),
  };
  return draw(option, HEAD + lines.length * LINE + FOOT, theme);
}
