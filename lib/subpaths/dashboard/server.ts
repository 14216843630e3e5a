import { Log } from '../../contract/log.js';
import { MAYBE_DONE, NOTHING_DONE } from '../../errors/for-operators.js';
import { messageOf, stackOf } from '../../errors/thrown.js';
import { misspeltField } from '../../job/fields.js';
import { quoted } from '../../job/text.js';
import { VERSION } from '../../worker/registrar.js';
import { ActionLog } from './action-log.js';
import { ROUTES } from './api.js';
import type { ApiCall, ApiParts } from './call.js';
import {
  bodyOf,
  checkOrigin,
  faultOf,
  HttpFault,
  isHttpException,
  noQueue,
  queryOf,
  segmentsOf,
  send,
  sendJson,
  type PlatformRequest,
  type PlatformResponse,
  type RawResponse,
} from './http.js';
import { LiveStreams } from './live.js';
import type { CheckedDashboardOptions } from './options.js';
import { SlowReader } from './overview.js';
import type { DashboardPage } from './page.js';
import {
  DASHBOARD_ACTIONS,
  decide,
  ROLES,
  roleOf,
  type DashboardAction,
  type DashboardPlace,
  type Decision,
} from './rights.js';
import type { MeView } from './views.js';

const API = '/api/v1';
const STREAM_FIELDS = ['queue', 'since', 'type', 'name'];
const READS: readonly DashboardAction[] = ['read', 'read-data', 'read-actions'];

const LOG_AGAIN_MS = 60_000;
const MAX_LOGGED = 100;

/** The actor if `authorize` names none. */
const NOBODY = 'dashboard';

/** Handles every request of the dashboard with the request and response of Node, so Express and Fastify behave the same. */
export class DashboardServer {
  private readonly logger = new Log('QueueDashboard');
  private readonly live: LiveStreams;
  private readonly actions: ActionLog;
  private readonly parts: ApiParts;
  /** When errors of `authorize` were logged, by their text. */
  private readonly logged = new Map<string, number>();

  constructor(
    private readonly options: CheckedDashboardOptions,
    parts: Omit<ApiParts, 'slow'>,
    private readonly page: DashboardPage,
    private readonly globalPrefix: () => string,
  ) {
    this.parts = { ...parts, slow: new SlowReader(parts.engine, parts.inspector) };
    this.actions = new ActionLog(parts.engine, options.onAction, this.logger);
    this.live = new LiveStreams(parts.events, parts.redactor, options.maxStreams);
  }

  /** Never rejects. */
  async handle(request: PlatformRequest, platform: PlatformResponse): Promise<void> {
    platform.hijack?.();
    const response = platform.raw ?? (platform as unknown as RawResponse);
    try {
      const url = urlOf(request);
      const rest = this.restOf(url.pathname);
      if (rest === API || rest.startsWith(`${API}/`))
        await this.api(rest.slice(API.length), url, request, response);
      else this.file(rest, url, request, response);
    } catch (error) {
      this.fail(error, request, response);
    }
  }

  /** Ends the streams. */
  close(): void {
    this.live.close();
  }

  /** The part of a path after that of the dashboard. The dashboard needs nothing else, so it works behind any prefix or proxy. */
  private restOf(pathname: string): string {
    const own = `/${this.options.path}`;
    const prefix = this.globalPrefix().replace(/^\/|\/$/g, '');
    const starts = [...(prefix === '' ? [] : [`/${prefix}${own}`]), own];
    const start = starts.find((one) => pathname === one || pathname.startsWith(`${one}/`));
    if (start !== undefined) return pathname.slice(start.length);
    // Behind a path that `RouterModule` or a version adds.
    return pathname.endsWith(own) ? '' : pathname.slice(pathname.indexOf(`${own}/`) + own.length);
  }

  private file(rest: string, url: URL, request: PlatformRequest, response: RawResponse): void {
    if (request.method !== 'GET' && request.method !== 'HEAD')
      throw new HttpFault(405, 'METHOD', 'pages allow only GET and HEAD');
    const path = rest.slice(1);
    if (rest === '') {
      // Relative addresses of the page need its trailing slash.
      const last = url.pathname.slice(url.pathname.lastIndexOf('/') + 1);
      send(response, 302, { location: `${last}/${url.search}` }, '');
      return;
    }
    const [, asset] = /^assets\/([A-Za-z0-9._-]+)$/.exec(path) ?? [];
    if (asset !== undefined && this.page.sendAsset(asset, request, response)) return;
    if (path.endsWith('/') && this.page.isPage(path.slice(0, -1))) {
      send(response, 302, { location: `../${path.split('/').at(-2)}${url.search}` }, '');
      return;
    }
    const isPage = this.page.isPage(path);
    // A person sees the links to the other pages.
    if (!isPage && !/\btext\/html\b/.test(request.headers['accept'] ?? ''))
      throw new HttpFault(404, 'NOT_FOUND', 'there is no such page');
    this.page.sendPage(isPage ? 200 : 404, path.split('/').length - 1, response);
  }

  private async api(rest: string, url: URL, request: PlatformRequest, response: RawResponse): Promise<void> {
    const segments = segmentsOf(rest);
    const method = request.method === 'HEAD' ? 'GET' : request.method;
    const query = queryOf(url.searchParams);
    if (method === 'GET' && segments.join('/') === 'me') {
      checkFields(query, [], 'query');
      return sendJson(response, 200, await this.me(request));
    }
    if (method === 'GET' && segments.join('/') === 'events') {
      checkFields(query, STREAM_FIELDS, 'query');
      return this.stream(request, query, response);
    }
    const matches = ROUTES.flatMap(([verb, path, route, fields = []]) => {
      const params = match(path, segments);
      return params ? [{ verb, params, route, fields }] : [];
    });
    if (matches.length === 0) throw new HttpFault(404, 'NOT_FOUND', 'there is no such call');
    const found = matches.find(({ verb }) => verb === method);
    if (!found) throw new HttpFault(405, 'METHOD', `use ${matches.map(({ verb }) => verb).join(' or ')}`);
    if (method !== 'GET') checkOrigin(request);
    checkFields(query, method === 'GET' ? found.fields : [], 'query');
    const body = method === 'GET' ? {} : await bodyOf(request);
    checkFields(body, found.fields, 'body');
    const call = this.call(request, found.params, query, body);
    sendJson(response, 200, await found.route(call, this.parts));
  }

  private call(
    request: PlatformRequest,
    params: ApiCall['params'],
    query: ApiCall['query'],
    body: ApiCall['body'],
  ): ApiCall {
    let actor: string | undefined;
    const require: ApiCall['require'] = async (action, place = {}) => {
      const decision = await this.decide(request, action, place);
      actor = decision.actor ?? actor;
      if (decision.isAllowed) return;
      if (decision.refusal) throw decision.refusal;
      if (action === 'read' && place.queue !== undefined) throw noQueue(place.queue);
      const isOff = this.options.readOnly && !READS.includes(action);
      throw isOff ? readOnly() : forbidden(action);
    };
    return {
      params,
      query,
      body,
      require,
      rightsOf: (place) => this.rightsOf(request, place),
      canSee: async (queue) =>
        (await this.decide(request, 'read', queue === undefined ? {} : { queue })).isAllowed,
      perform: async ({ needs, ...what }, run) => {
        // Refused before it is recorded: a read-only dashboard refuses everybody, and such records could push out those of real actions.
        if (this.options.readOnly) throw readOnly();
        const actorOf = () => actor ?? NOBODY;
        return this.actions.perform(what, actorOf, async () => {
          // oxlint-disable-next-line no-await-in-loop -- the first missing right is the one that is reported
          for (const [right, place] of needs) await require(right, place);
          try {
            return await run(actorOf());
          } catch (error) {
            throw faultOf(error, MAYBE_DONE) ?? error;
          }
        });
      },
    };
  }

  private async me(request: PlatformRequest): Promise<MeView> {
    const { title, environment, readOnly } = this.options;
    const queues: string[] = [];
    const pausable: string[] = [];
    const cancellable: string[] = [];
    const rights = new Set<DashboardAction>();
    for (const queue of await this.parts.queues()) {
      const own = await this.rightsOf(request, { queue });
      if (!own.includes('read')) continue;
      queues.push(queue);
      if (own.includes('queue.pause')) pausable.push(queue);
      if (own.includes('job.cancel')) cancellable.push(queue);
      for (const right of own) rights.add(right);
    }
    const { actor, isAllowed, refusal } = await this.decide(request, 'read', {});
    if (queues.length === 0 && !isAllowed) throw refusal ?? forbidden('read');
    return {
      title,
      environment,
      readOnly,
      rights: [...rights],
      actor: actor ?? null,
      now: this.parts.engine.now(),
      queues,
      pausable,
      cancellable,
      canSeeRedis: isAllowed,
      version: VERSION,
    };
  }

  private async stream(
    request: PlatformRequest,
    query: Readonly<Record<string, string>>,
    response: RawResponse,
  ): Promise<void> {
    const wanted = query['queue'];
    const names = (await this.parts.queues()).filter((name) => wanted === undefined || name === wanted);
    const rights = await Promise.all(names.map((queue) => this.rightsOf(request, { queue })));
    const queues = names.flatMap((name, at) =>
      rights[at]!.includes('read') ? [{ name, canSeeData: rights[at]!.includes('read-data') }] : [],
    );
    // Events of an unregistered queue can only be read after its handle was created.
    for (const { name } of queues) this.parts.handleOf(name);
    if (wanted !== undefined && queues.length === 0) throw noQueue(wanted.slice(0, 128));
    if (queues.length === 0) {
      const { isAllowed, refusal } = await this.decide(request, 'read', {});
      if (!isAllowed) throw refusal ?? forbidden('read');
    }
    // A page that pauses opens a new stream, and only the browser can set this header.
    const last = request.headers['last-event-id'] ?? query['since'];
    const since = typeof last === 'string' && last !== '' ? last : undefined;
    this.live.start(response, queues, since, query['type'], query['name']);
  }

  /** Calls `authorize` once if it returns a role. */
  private async rightsOf(
    request: PlatformRequest,
    place: DashboardPlace,
  ): Promise<readonly DashboardAction[]> {
    const role = roleOf(await this.verdictOf(request, 'read', place));
    if (role !== null)
      return this.options.readOnly ? ROLES[role].filter((right) => READS.includes(right)) : ROLES[role];
    const all = await Promise.all(DASHBOARD_ACTIONS.map((action) => this.decide(request, action, place)));
    return DASHBOARD_ACTIONS.filter((_, at) => all[at]!.isAllowed);
  }

  private async decide(
    request: PlatformRequest,
    action: DashboardAction,
    place: DashboardPlace,
  ): Promise<Decision & { readonly refusal?: Error | undefined }> {
    const verdict = await this.verdictOf(request, action, place);
    if (verdict instanceof Refusal) return { isAllowed: false, actor: undefined, refusal: verdict.error };
    const decision = decide(verdict, action);
    const isOff = this.options.readOnly && !READS.includes(action);
    return isOff ? { ...decision, isAllowed: false } : decision;
  }

  /** An exception of Nest, such as `ForbiddenException`, refuses the action. Any other error is a fault of `authorize`. */
  private async verdictOf(
    request: PlatformRequest,
    action: DashboardAction,
    place: DashboardPlace,
  ): Promise<unknown> {
    try {
      return await this.options.authorize(request, action, place);
    } catch (error) {
      const isOfNest = isHttpException(error);
      if (isOfNest && error.getStatus() < 500) return new Refusal(error);
      this.logFault(error);
      throw isOfNest
        ? error
        : new HttpFault(500, 'AUTHORIZE', 'authorize of this dashboard failed: the log has the error');
    }
  }

  /** An open page asks every few seconds, for each queue, so the same error is logged once a minute. */
  private logFault(error: unknown): void {
    const text = messageOf(error);
    const now = performance.now();
    if (now - (this.logged.get(text) ?? -Infinity) < LOG_AGAIN_MS) return;
    if (this.logged.size >= MAX_LOGGED) this.logged.clear();
    this.logged.set(text, now);
    this.logger.error(`authorize failed: ${text}`, stackOf(error));
  }

  private fail(error: unknown, request: PlatformRequest, response: RawResponse): void {
    const isRead = request.method === 'GET' || request.method === 'HEAD';
    const fault = faultOf(error, isRead ? undefined : NOTHING_DONE);
    if (!fault)
      this.logger.error(`${request.method} ${quoted(request.url)}: ${messageOf(error)}`, stackOf(error));
    if (response.headersSent) {
      response.destroy();
      return;
    }
    const { status, code, message } =
      fault ?? new HttpFault(500, 'INTERNAL', 'an error that the log describes');
    sendJson(response, status, { error: { code, message } });
  }
}

/** An exception of `authorize` that refuses an action. */
class Refusal {
  constructor(readonly error: Error) {}
}

/** @param fields those that the call reads; null if it checks them itself. */
function checkFields(
  given: Readonly<Record<string, unknown>>,
  fields: readonly string[] | null,
  path: 'body' | 'query',
): void {
  if (fields === null) return;
  const unknown = Object.keys(given).find((name) => !fields.includes(name));
  if (unknown === undefined) return;
  const none = path === 'body' ? 'this call takes no fields' : 'this call takes no fields in its address';
  throw misspeltField(path, unknown, fields, fields.length === 0 ? none : undefined);
}

function readOnly(): HttpFault {
  return new HttpFault(403, 'FORBIDDEN', 'this dashboard is read-only');
}

function forbidden(action: DashboardAction): HttpFault {
  return new HttpFault(403, 'FORBIDDEN', `you may not do this (${action})`);
}

function urlOf({ originalUrl, url }: PlatformRequest): URL {
  const path = originalUrl ?? url;
  if (!path.startsWith('/')) throw new HttpFault(400, 'BAD_PATH', 'the path must begin with a slash');
  return new URL(`http://host${path}`);
}

function match(path: string, segments: readonly string[]): Record<string, string> | null {
  const parts = path.split('/');
  if (parts.length !== segments.length) return null;
  const params: Record<string, string> = {};
  for (const [at, part] of parts.entries()) {
    if (part.startsWith(':')) params[part.slice(1)] = segments[at]!;
    else if (part !== segments[at]) return null;
  }
  return params;
}
