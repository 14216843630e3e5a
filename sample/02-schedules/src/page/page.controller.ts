import { readFileSync } from 'node:fs';
import { Controller, Get, Header, NotFoundException, Param, StreamableFile } from '@nestjs/common';

const FOLDER = new URL('./assets/', import.meta.url);

const TYPES: Readonly<Record<string, string>> = {
  'index.html': 'text/html; charset=utf-8',
  'page.css': 'text/css; charset=utf-8',
  'page.js': 'text/javascript; charset=utf-8',
  'runs.js': 'text/javascript; charset=utf-8',
  'view.js': 'text/javascript; charset=utf-8',
  'icon.svg': 'image/svg+xml',
};

// Scripts and styles come from this server only and none are inline, so injected markup could not run.
const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
  "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/** A page of plain files, read once. */
@Controller()
export class PageController {
  private readonly files = new Map(
    Object.keys(TYPES).map((name) => [name, readFileSync(new URL(name, FOLDER))] as const),
  );

  @Get()
  @Header('Content-Security-Policy', POLICY)
  @Header('X-Content-Type-Options', 'nosniff')
  @Header('Cache-Control', 'no-cache')
  index(): StreamableFile {
    return this.file('index.html');
  }

  @Get('page/:name')
  @Header('X-Content-Type-Options', 'nosniff')
  @Header('Cache-Control', 'no-cache')
  file(@Param('name') name: string): StreamableFile {
    const content = this.files.get(name);
    if (!content) throw new NotFoundException();
    return new StreamableFile(content, { type: TYPES[name]!, length: content.length });
  }
}
