// The only module that calls the server: relative addresses, credentials, errors in the server's
// words.
import type {
  Alert,
  Cost,
  CostBy,
  CostCategory,
  CostForecast,
  Decision,
  Gpus,
  HistoryEvent,
  Jobs,
  Overview,
  PodDetail,
  Pool,
  Quota,
  Savings,
  SeriesAnswer,
  Session,
  Stories,
  WhatIf,
  Workloads,
} from "./types";

const tokenKey = "nos.token";

/** An answer other than 2xx, or none (status 0). The message is suitable for display. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    message: string,
    /** Address for signing in with a browser; empty if the server has none. */
    readonly signIn = "",
  ) {
    super(message);
    this.name = "ApiError";
  }
}

/** The bearer token of this tab; forgotten when the tab is closed. */
export const token = {
  get: (): string => sessionStorage.getItem(tokenKey) ?? "",
  set(value: string): void {
    if (value) sessionStorage.setItem(tokenKey, value);
    else sessionStorage.removeItem(tokenKey);
  },
};

export type Query = Record<string, string | number | undefined | readonly string[]>;

/** The address of an API path, relative to the page's. Empty values are left out. */
export function address(path: string, query: Query = {}, base = document.baseURI): URL {
  const url = new URL(`api/v1/${path}`, new URL("./", base));
  for (const [name, value] of Object.entries(query)) {
    if (value === undefined || value === "") continue;
    for (const each of Array.isArray(value) ? value : [value]) {
      url.searchParams.append(name, String(each));
    }
  }
  return url;
}

export function headers(more: Record<string, string> = {}): Record<string, string> {
  const bearer = token.get();
  return bearer ? { ...more, Authorization: `Bearer ${bearer}` } : more;
}

/** The server's error message, or the meaning of the status if it has none. */
export function errorOf(status: number, body: string): ApiError {
  try {
    const { error: said, sign_in: place } = JSON.parse(body) as { error?: unknown; sign_in?: unknown };
    if (typeof said === "string" && said) return new ApiError(status, said, typeof place === "string" ? place : "");
  } catch {
    // Keep the generic message: a proxy in between answers with a page of its own.
  }
  return new ApiError(status, `The server answered with status ${status}. Its log says why.`);
}

async function askText(url: URL, init: RequestInit): Promise<{ status: number; text: string }> {
  let response: Response;
  try {
    response = await fetch(url, { ...init, cache: "no-store", credentials: "same-origin" });
  } catch (cause) {
    if (init.signal?.aborted) throw cause;
    throw new ApiError(0, "The server cannot be reached. Check that nos telemetry runs; the page tries again by itself.");
  }
  const text = await response.text();
  if (!response.ok) throw errorOf(response.status, text);
  return { status: response.status, text };
}

async function ask<T>(url: URL, init: RequestInit): Promise<T> {
  const { status, text } = await askText(url, init);
  try {
    return JSON.parse(text) as T;
  } catch {
    throw new ApiError(status, "The answer is not JSON. Something between here and nos telemetry rewrites it.");
  }
}

function get<T>(path: string, query: Query, signal?: AbortSignal): Promise<T> {
  return ask<T>(address(path, query), { headers: headers({ Accept: "application/json" }), signal });
}

function post<T>(path: string, body: unknown): Promise<T> {
  return ask<T>(address(path), {
    method: "POST",
    body: JSON.stringify(body),
    // A page of another site cannot send this header without a CORS preflight.
    headers: headers({ "Content-Type": "application/json", "X-Nos-Csrf": "1" }),
  });
}

export interface WorkloadQuery {
  namespace?: string;
  state?: string;
  /** Only pods of this job: "Job/train". */
  job?: string;
  q?: string;
  at?: number;
  limit?: number;
  after?: string;
}

export interface CostQuery {
  from: number;
  to: number;
  by: CostBy;
  namespace?: string;
  sort?: CostCategory;
  limit?: number;
}

export interface SeriesQuery {
  metric: string;
  subject: readonly string[];
  from: number;
  to: number;
  points: number;
}

/** Ends the session of this browser. */
export async function signOut(place: string): Promise<void> {
  await ask<unknown>(new URL(place, new URL("./", document.baseURI)), {
    method: "POST",
    headers: { "Content-Type": "application/json", "X-Nos-Csrf": "1" },
  });
}

export const api = {
  /** `namespace`: checked first, if it is not known yet whether the user may read it. */
  session: (namespace: string, signal?: AbortSignal) => get<Session>("session", { namespace }, signal),
  overview: (cluster: string, signal?: AbortSignal) => get<Overview>("overview", { cluster }, signal),
  gpus: (cluster: string, at?: number, namespace?: string, signal?: AbortSignal) =>
    get<Gpus>("gpus", { cluster, at, namespace }, signal),
  workloads: (cluster: string, query: WorkloadQuery, signal?: AbortSignal) =>
    get<Workloads>("workloads", { cluster, ...query }, signal),
  jobs: (cluster: string, namespace?: string, at?: number, signal?: AbortSignal) =>
    get<Jobs>("jobs", { cluster, namespace, at }, signal),
  workload: (cluster: string, namespace: string, name: string, signal?: AbortSignal) =>
    get<PodDetail>(
      `workloads/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}`,
      { cluster },
      signal,
    ),
  decisions: (
    cluster: string,
    query: { from?: number; to?: number; limit?: number; before?: string },
    signal?: AbortSignal,
  ) => get<{ decisions: Decision[] }>("decisions", { cluster, ...query }, signal),
  /** Newest first. */
  stories: (cluster: string, query: { since?: number; limit?: number; before?: string }, signal?: AbortSignal) =>
    get<Stories>("stories", { cluster, ...query }, signal),
  quotas: (cluster: string, at?: number, signal?: AbortSignal) =>
    get<{ quotas: Quota[] }>("quotas", { cluster, at }, signal),
  pools: (cluster: string, at?: number, signal?: AbortSignal) =>
    get<{ pools: Pool[] }>("pools", { cluster, at }, signal),
  alerts: (cluster: string, signal?: AbortSignal) => get<{ configured: boolean; alerts: Alert[] }>("alerts", { cluster }, signal),
  cost: (cluster: string, query: CostQuery, signal?: AbortSignal) => get<Cost>("cost", { cluster, ...query }, signal),
  /** All digits, as the server writes them. */
  costCsv: async (cluster: string, query: CostQuery) =>
    (await askText(address("cost", { cluster, ...query, format: "csv" }), { headers: headers({ Accept: "text/csv" }) })).text,
  /** `month`: "2026-11"; the current one if left out. */
  costForecast: (cluster: string, query: { month?: string; namespace?: string }, signal?: AbortSignal) =>
    get<CostForecast>("cost-forecast", { cluster, ...query }, signal),
  savings: (cluster: string, query: { from: number; to: number }, signal?: AbortSignal) => get<Savings>("savings", { cluster, ...query }, signal),
  series: (cluster: string, query: SeriesQuery, signal?: AbortSignal) =>
    get<SeriesAnswer>("series", { cluster, ...query }, signal),
  /** Newest first; `next` continues with older ones. */
  history: (
    cluster: string,
    query: { from: number; to: number; limit: number; kind?: readonly string[]; what?: string; brief?: string; after?: string },
    signal?: AbortSignal,
  ) => get<{ events: HistoryEvent[]; next: string | null }>("history", { cluster, ...query }, signal),
  whatIf: (cluster: string, pod: string) => post<WhatIf>("what-if", { cluster, pod }),
  submit: (cluster: string, pod: string) =>
    post<{ namespace: string; name: string }>("submit", { cluster, pod }),
};
