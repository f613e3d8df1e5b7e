// The server's side of the HTTP boundary: the API over a simulated cluster, and the built files
// with the real server's headers. Tests turn its knobs through POST /test.
import { readFile } from "node:fs/promises";
import http from "node:http";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { Answers } from "./answers";
import { Costs, type Prices } from "./costs";
import { SimCluster, type Changes } from "./cluster";
import type { Decision, Session, Story } from "../../src/api/types";

const files = fileURLToPath(new URL("../../dist/", import.meta.url));

export const policy =
  "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; object-src 'none'";

const types: Record<string, string> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
};

/** The state that a test may change. */
export interface Knobs {
  token: string; // required, if not empty
  signIn: boolean; // browsers sign in at a provider, which accepts everyone
  forbidden: boolean; // cluster-wide views
  failing: boolean; // every answer is 503
  empty: boolean; // no node, no pod
  submit: boolean;
  namespaces: string[] | null;
  prices: Prices; // of GPUs
  unasked: string[]; // further namespaces, granted once the user names them
}

/** Each decision is a story of its own. */
const storyOf = ({ id, type, state, at, took_ms, pods, victims, nodes, story }: Decision): Story => ({
  id, type, outcome: state, from: at, at, took_ms: took_ms ?? null, pods, victims, nodes: nodes.map((each) => each.node), created: { "1g.10gb": 1 }, destroyed: {},
  subject: story.subject, sentence: story.sentence, reason: story.reason, decisions: [id],
});

const normal: Knobs = { token: "", signIn: false, forbidden: false, failing: false, empty: false, submit: true, namespaces: null, prices: "all", unasked: [] };

export interface Options {
  port?: number;
  /** Files and API lie below this path, such as "/gpu/"; "/" if left out. */
  prefix?: string;
  size?: number;
  /** Simulated milliseconds per second of the real clock; 0: time stands still. */
  speed?: number;
}

export class Double {
  readonly cluster: SimCluster;
  readonly answers: Answers;
  readonly costs: Costs;
  readonly submitted: string[] = [];
  readonly prefix: string;
  knobs: Knobs = { ...normal };
  private readonly server = http.createServer((request, response) => void this.handle(request, response));
  private readonly streams = new Set<http.ServerResponse>();
  private timer: ReturnType<typeof setInterval> | undefined;
  private serial = 0;

  constructor(private readonly options: Options = {}) {
    const base = Date.UTC(2026, 5, 17, 14, 20, 0);
    this.cluster = new SimCluster(base, options.size ?? 1);
    this.answers = new Answers(this.cluster, base + 4000);
    this.costs = new Costs(this.answers);
    this.prefix = options.prefix ?? "/";
  }

  async start(): Promise<string> {
    await new Promise<void>((resolve) => this.server.listen(this.options.port ?? 0, "127.0.0.1", resolve));
    if (this.options.speed) this.timer = setInterval(() => this.advance(this.options.speed ?? 0), 1000);
    const address = this.server.address();
    const port = typeof address === "object" && address ? address.port : 0;
    return `http://127.0.0.1:${port}${this.prefix}`;
  }

  stop(): void {
    clearInterval(this.timer);
    this.server.closeAllConnections();
    this.server.close();
  }

  dropStreams(): void {
    for (const each of this.streams) each.destroy();
  }

  advance(ms: number): void {
    const earlier = this.answers.now;
    this.answers.now += ms;
    const changes = this.cluster.advance(this.answers.now);
    if (Math.floor(this.answers.now / 10_000) > Math.floor(earlier / 10_000)) this.tell(changes);
  }

  private tell(changes: Changes): void {
    this.send("overview", this.answers.overview());
    // Readings change on all nodes; a quarter of the nodes reports in each round.
    const all = this.cluster.nodes.filter((node) => !node.silentSince);
    const part = all.filter((_, index) => index % 4 === this.serial % 4);
    const nodes = [...new Set([...changes.nodes, ...part])].map((node) => this.answers.node(node));
    this.send("gpus", { nodes });
    const busy = this.cluster.pods.filter((pod) => pod.state === "running").slice(0, 200);
    const changed = [...new Set([...changes.pods, ...busy])].map((pod) => this.answers.pod(pod));
    this.send("workloads", { changed, removed: [] });
    for (const decision of changes.decisions) this.send("decision", decision);
    this.send("quotas", { quotas: this.answers.quotas() });
    this.send("pools", this.answers.pools());
    this.send("at", { at: this.answers.now });
  }

  private send(event: string, data: unknown): void {
    this.serial++;
    for (const each of this.streams) this.write(each, event, data, this.serial);
  }

  private write(stream: http.ServerResponse, event: string, data: unknown, id: number): void {
    stream.write(`id: ${id}\nevent: ${event}\ndata: ${JSON.stringify(data)}\n\n`);
  }

  private async handle(request: http.IncomingMessage, response: http.ServerResponse): Promise<void> {
    const url = new URL(request.url ?? "/", "http://double");
    response.setHeader("Content-Security-Policy", policy);
    response.setHeader("X-Content-Type-Options", "nosniff");
    response.setHeader("Referrer-Policy", "no-referrer");
    const local = url.pathname.startsWith(this.prefix) ? `/${url.pathname.slice(this.prefix.length)}` : "";
    try {
      if (url.pathname === "/test") return this.turn(await body(request), response);
      if (local.startsWith("/api/v1/")) return await this.api(local.slice(8), url.searchParams, request, response);
      if (local === "/login" || local === "/logout") return this.sign(local === "/login", response);
      return await this.file(local, response);
    } catch (error) {
      json(response, 500, { error: String(error) });
    }
  }

  private sign(comes: boolean, response: http.ServerResponse): void {
    response.setHeader("Set-Cookie", `double=${comes ? "1" : "; Max-Age=0"}; Path=/; HttpOnly; SameSite=Strict`);
    if (!comes) return json(response, 200, {});
    response.writeHead(302, { Location: "./" }).end();
  }

  private turn(text: string, response: http.ServerResponse): void {
    const { advance, drop, reset, ...knobs } = JSON.parse(text) as Partial<Knobs> & { advance?: number; drop?: boolean; reset?: boolean };
    if (reset) this.knobs = { ...normal };
    this.knobs = { ...this.knobs, ...knobs };
    if (drop) this.dropStreams();
    if (advance) this.advance(advance);
    json(response, 200, { now: this.answers.now, submitted: this.submitted });
  }

  private async file(local: string, response: http.ServerResponse): Promise<void> {
    const name = path.join(files, local === "/" || local === "" ? "index.html" : path.normalize(local));
    if (!name.startsWith(files)) return json(response, 404, { error: "no such file" });
    const content = await readFile(name).catch(() => undefined);
    if (!content) return json(response, 404, { error: `${local} is not here; build the dashboard with script/web` });
    response.setHeader("Content-Type", types[path.extname(name)] ?? "application/octet-stream");
    response.end(content);
  }

  private async api(
    local: string, query: URLSearchParams, request: http.IncomingMessage, response: http.ServerResponse,
  ): Promise<void> {
    const { knobs, answers } = this;
    if (knobs.failing) return json(response, 503, { error: "the store is being opened" });
    if (knobs.token && request.headers.authorization !== `Bearer ${knobs.token}`) {
      return json(response, 401, { error: "the token is not valid in this cluster; make a new one" });
    }
    const signed = request.headers.cookie?.includes("double=1") ?? false;
    if (knobs.signIn && !signed) return json(response, 401, { error: "sign in", sign_in: "login" });
    if (request.method === "POST") return this.post(local, request, response);
    const parts = local.split("/").map(decodeURIComponent);
    if (local === "session") return json(response, 200, this.session(query.get("namespace") ?? ""));
    if (local === "stream") return this.stream(request, response);
    if (knobs.forbidden && ["overview", "gpus", "decisions", "stories", "series", "history", "pools"].includes(local)) {
      return json(response, 403, { error: `user casey may not see all of the cluster; it takes the right "get" on nodes/${local}` });
    }
    const at = Number(query.get("at")) || answers.now;
    const [from, to] = [Number(query.get("from")) || 0, Number(query.get("to")) || answers.now];
    const limit = Math.min(5000, Number(query.get("limit")) || 100);
    switch (parts[0]) {
      case "overview":
        return json(response, 200, knobs.empty ? this.nothing() : answers.overview());
      case "gpus": {
        const nodes = knobs.empty ? [] : this.cluster.nodes.map((node) => answers.node(node, at, query.get("namespace") ?? ""));
        return json(response, 200, { at, fresh_at: Math.floor(at / 10_000) * 10_000, nodes });
      }
      case "workloads": {
        if (parts.length === 3) {
          const pod = answers.workload(parts[1] ?? "", parts[2] ?? "");
          return pod ? json(response, 200, pod) : json(response, 404, { error: `there is no pod ${parts[1]}/${parts[2]}; it may be gone` });
        }
        return json(response, 200, knobs.empty ? { at, total: 0, pods: [], next: null } : answers.workloads(query));
      }
      case "decisions": {
        const before = query.get("before");
        let all = [...this.cluster.decisions].reverse().filter((each) => each.at >= from && each.at <= to);
        if (before) all = all.slice(all.findIndex((each) => each.id === before) + 1);
        return json(response, 200, { decisions: knobs.empty ? [] : all.slice(0, limit), next: limit < all.length ? all[limit - 1]!.id : null });
      }
      case "stories": {
        const since = Number(query.get("since")) || 0;
        const all = knobs.empty ? [] : [...this.cluster.decisions].reverse().filter((each) => each.at >= since).map(storyOf);
        const first = query.get("before") ? all.findIndex((each) => `${each.at}.${each.id}` === query.get("before")) + 1 : 0;
        const page = all.slice(first, first + limit);
        const last = page.at(-1);
        return json(response, 200, { stories: page, next: last && first + limit < all.length ? `${last.at}.${last.id}` : null });
      }
      case "jobs":
        return json(response, 200, knobs.empty ? { total: 0, jobs: [], queues: [] } : answers.jobs(query));
      case "quotas":
        return json(response, 200, { quotas: knobs.empty ? [] : answers.quotas(at) });
      case "alerts":
        return json(response, 200, knobs.empty ? { at, configured: false, alerts: [] } : answers.alerts());
      case "pools":
        return json(response, 200, knobs.empty ? { pools: [] } : answers.pools(at));
      case "cost":
        this.costs.prices = knobs.prices;
        if (knobs.empty) query.set("to", "1");
        if (query.get("format") === "csv") {
          response.writeHead(200, { "Content-Type": "text/csv; charset=utf-8; header=present", "Cache-Control": "no-store" });
          return void response.end(this.costs.csv(query, knobs.namespaces));
        }
        return json(response, 200, this.costs.cost(query, knobs.namespaces));
      case "cost-forecast":
        this.costs.prices = knobs.prices;
        return json(response, 200, this.costs.forecast(query, knobs.namespaces));
      case "savings":
        if (knobs.namespaces) return json(response, 403, { error: "savings is about the whole cluster, and casey may see only some namespaces" });
        this.costs.prices = knobs.prices;
        return json(response, 200, this.costs.savings(query));
      case "series":
        return json(response, 200, answers.series(query));
      case "history":
        return json(response, 200, knobs.empty ? { events: [], next: null } : answers.history(query));
    }
    return json(response, 404, { error: `there is no ${local} in the API` });
  }

  private async post(local: string, request: http.IncomingMessage, response: http.ServerResponse): Promise<void> {
    if (request.headers["x-nos-csrf"] !== "1") return json(response, 403, { error: "the header X-Nos-Csrf is missing" });
    const { pod } = JSON.parse(await body(request)) as { pod: string };
    const answer = this.answers.whatIf(pod);
    if ("error" in answer) return json(response, 400, answer);
    if (local === "what-if") return json(response, 200, answer);
    if (local !== "submit") return json(response, 404, { error: `there is no ${local} in the API` });
    if (!this.knobs.submit) return json(response, 403, { error: "user casey may not create pods in namespace vision" });
    this.submitted.push(pod);
    const field = (name: string): string => new RegExp(`\\b${name}:\\s*([\\w.-]+)`).exec(pod)?.[1] ?? "";
    return json(response, 200, { namespace: field("namespace") || "default", name: field("name") || "pod" });
  }

  private session(named: string): Session {
    const { knobs } = this;
    if (knobs.unasked.includes(named)) {
      knobs.unasked = knobs.unasked.filter((each) => each !== named);
      knobs.namespaces = [...(knobs.namespaces ?? []), named];
    }
    const { namespaces, submit, unasked } = knobs;
    return {
      user: "casey", sandbox: false, clusters: ["prod", "lab"], can: { submit, what_if: true, all_namespaces: namespaces === null },
      namespaces, unasked_namespaces: unasked.length, now: this.answers.now, version: "1.4.0", ...(this.knobs.signIn && { sign_out: "logout" }),
    };
  }

  private nothing(): unknown {
    return {
      ...this.answers.overview(), gpus: 0, slots: 0, allocated: 0, used: null, idle: 0, free: 0, fragmented: 0, stranded: 0, empty: 0, empty_gpus: 0, empty_nodes: 0,
      pods: {}, seconds_to_slice: null, nodes: 0, stale_nodes: 0, models: [],
    };
  }

  private stream(request: http.IncomingMessage, response: http.ServerResponse): void {
    response.writeHead(200, { "Content-Type": "text/event-stream", "Cache-Control": "no-store" });
    this.streams.add(response);
    const silence = setInterval(() => response.write(": still here\n\n"), 15_000);
    request.on("close", () => {
      clearInterval(silence);
      this.streams.delete(response);
    });
    this.write(response, "hello", { at: this.answers.now }, this.serial);
    if (request.headers["last-event-id"] !== undefined) this.write(response, "reset", {}, this.serial);
  }
}

function json(response: http.ServerResponse, status: number, data: unknown): void {
  response.writeHead(status, { "Content-Type": "application/json", "Cache-Control": "no-store" });
  response.end(JSON.stringify(data));
}

async function body(request: http.IncomingMessage): Promise<string> {
  const parts: Buffer[] = [];
  for await (const part of request) parts.push(part as Buffer);
  return Buffer.concat(parts).toString("utf8");
}
