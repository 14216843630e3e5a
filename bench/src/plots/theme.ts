/** Colours of one background. Each pair of text and background has a contrast of at least 4.5 to 1. */
export interface Theme {
  readonly name: 'light' | 'dark';
  readonly background: string;
  readonly text: string;
  readonly muted: string;
  readonly line: string;
  readonly own: string;
  readonly ownTail: string;
  readonly peer: string;
  readonly peerTail: string;
  /** To tell peers apart where they share a place. */
  readonly peers: readonly string[];
}

export const themes: readonly Theme[] = [
  {
    name: 'light',
    background: '#ffffff',
    text: '#1f2328',
    muted: '#59636e',
    line: '#d1d9e0',
    own: '#0b6bcb',
    ownTail: '#a9cdf0',
    peer: '#8c959f',
    peerTail: '#d5dade',
    peers: ['#b35900', '#7a4fc4', '#1a7f37', '#bf3989'],
  },
  {
    name: 'dark',
    background: '#0d1117',
    text: '#f0f6fc',
    muted: '#9198a1',
    line: '#3d444d',
    own: '#58a6ff',
    ownTail: '#1f4570',
    peer: '#848d97',
    peerTail: '#373e47',
    peers: ['#f0883e', '#bc8cff', '#3fb950', '#f778ba'],
  },
];
