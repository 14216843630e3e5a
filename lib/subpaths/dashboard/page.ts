import { createHash, randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { InvalidOptionError } from '../../errors.js';
import { messageOf } from '../../errors/thrown.js';
import { send, type PlatformRequest, type RawResponse } from './http.js';
import type { CheckedDashboardOptions } from './options.js';

interface Asset {
  readonly type: string;
  readonly plain: Buffer;
  readonly zipped: Buffer;
  readonly etag: string;
}

const FILES = {
  'app.js': 'text/javascript; charset=utf-8',
  'app.css': 'text/css; charset=utf-8',
  'icon.svg': 'image/svg+xml',
} as const;

/** The pages. The server sends the same document for each of them. */
const PAGES = [
  /^$/,
  /^(dead|find|schedules|workers|live|redis|actions)$/,
  /^queues(\/[^/]+(\/jobs(\/[^/]+)?)?)?$/,
];

/** The document and its files. They are read once and served by exact name, so no path can reach other files. */
export class DashboardPage {
  private readonly assets = new Map<string, Asset>();
  private readonly names: Readonly<Record<keyof typeof FILES, string>>;

  /** @throws {InvalidOptionError} if the files are not there. */
  constructor(private readonly options: CheckedDashboardOptions) {
    const names: Record<string, string> = {};
    for (const [file, type] of Object.entries(FILES)) {
      const plain = readAsset(file);
      const hash = createHash('sha256').update(plain).digest('hex').slice(0, 12);
      const name = file.replace('.', `.${hash}.`);
      names[file] = name;
      this.assets.set(name, { type, plain, zipped: gzipSync(plain, { level: 9 }), etag: `"${hash}"` });
    }
    this.names = names as typeof this.names;
  }

  isPage(path: string): boolean {
    return PAGES.some((page) => page.test(path));
  }

  sendAsset(name: string, { headers }: PlatformRequest, response: RawResponse): boolean {
    const asset = this.assets.get(name);
    if (!asset) return false;
    const { type, etag, plain, zipped } = asset;
    const caching = { etag, 'cache-control': 'public, max-age=31536000, immutable', vary: 'accept-encoding' };
    if (headers['if-none-match'] === etag) send(response, 304, caching, '');
    else if (/\bgzip\b/.test(headers['accept-encoding'] ?? ''))
      send(response, 200, { ...caching, 'content-type': type, 'content-encoding': 'gzip' }, zipped);
    else send(response, 200, { ...caching, 'content-type': type }, plain);
    return true;
  }

  /** @param depth how many folders the page is below the first one. Addresses are relative, so a proxy may add a path. */
  sendPage(status: 200 | 404, depth: number, response: RawResponse): void {
    const nonce = randomBytes(16).toString('base64');
    const policy = [
      "default-src 'none'",
      `script-src 'nonce-${nonce}'`,
      `style-src 'nonce-${nonce}'`,
      "img-src 'self'",
      "connect-src 'self'",
      "base-uri 'self'",
      "form-action 'none'",
      "frame-ancestors 'none'",
    ];
    const headers = {
      'content-type': 'text/html; charset=utf-8',
      'cache-control': 'no-store',
      'content-security-policy': policy.join('; '),
      'x-frame-options': 'DENY',
    };
    send(response, status, headers, this.html('../'.repeat(depth) || './', nonce));
  }

  private html(base: string, nonce: string): string {
    const { title, environment, readOnly } = this.options;
    const settings = JSON.stringify({ title, environment, readOnly }).replaceAll('<', '\\u003c');
    const { 'app.js': script, 'app.css': style, 'icon.svg': icon } = this.names;
    return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<base href="${base}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<title>${escapeHtml(title)}</title>
<link rel="icon" type="image/svg+xml" href="assets/${icon}">
<link rel="stylesheet" nonce="${nonce}" href="assets/${style}">
</head>
<body>
<div id="app"></div>
<noscript>The dashboard needs JavaScript.</noscript>
<script type="application/json" id="settings" nonce="${nonce}">${settings}</script>
<script type="module" nonce="${nonce}" src="assets/${script}"></script>
</body>
</html>
`;
  }
}

function readAsset(file: string): Buffer {
  try {
    return readFileSync(join(__dirname, 'ui', file));
  } catch (error) {
    const message = `the files of the dashboard are not in the package (${messageOf(error)}); install godwit again`;
    throw new InvalidOptionError('QueueDashboardModule.forRoot()', 'built', file, message);
  }
}

function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (sign) => `&#${sign.charCodeAt(0)};`);
}
