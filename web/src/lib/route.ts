// The page and its whole state are in the address after '#': links can be shared, and the files
// work behind any path. "#/map?at=1763760000000&by=team".
import { useSyncExternalStore } from "react";

export const pages = ["overview", "map", "workloads", "decisions", "quotas", "team", "pools", "cost", "what-if"] as const;
/** Beside those of the navigation: the wall. */
const all = [...pages, "wall"] as const;
export type Page = (typeof all)[number];

export interface Route {
  page: Page;
  params: Readonly<Record<string, string>>;
}

// Parameters kept when another page is opened: cluster, namespace and time, but no selection.
const lasting = ["cluster", "ns", "range", "from", "to"] as const;

export function parse(hash: string): Route {
  const [path = "", query = ""] = hash.replace(/^#/, "").split("?", 2);
  const name = path.replace(/^\//, "");
  const page = all.find((each) => each === name) ?? "overview";
  const params: Record<string, string> = {};
  for (const [key, value] of new URLSearchParams(query)) {
    if (value) params[key] = value;
  }
  return { page, params };
}

export function format({ page, params }: Route): string {
  const query = new URLSearchParams(Object.entries(params).filter(([, value]) => value !== ""));
  query.sort();
  const text = query.toString();
  return `#/${page}${text ? `?${text}` : ""}`;
}

/** A link to a page that keeps cluster, namespace and time; empty values remove parameters. */
export function href(page: Page, more: Record<string, string> = {}): string {
  const kept: Record<string, string> = {};
  for (const name of lasting) {
    const value = current.params[name];
    if (value !== undefined) kept[name] = value;
  }
  return format({ page, params: { ...kept, ...more } });
}

let current: Route = { page: "overview", params: {} };
const listeners = new Set<() => void>();

function read(): void {
  const next = parse(window.location.hash);
  if (format(next) === format(current) && current !== initial) return;
  current = next;
  for (const each of listeners) each();
}
const initial = current;

export function startRouting(): void {
  read();
  window.addEventListener("hashchange", read);
}

/** Changes parameters of the page. `replace` (the default) adds nothing to the history. */
export function setParams(change: Record<string, string>, how: "replace" | "push" = "replace"): void {
  const hash = format({ page: current.page, params: { ...current.params, ...change } });
  if (how === "push") window.history.pushState(null, "", hash);
  else window.history.replaceState(null, "", hash);
  read();
}

export function useRoute(): Route {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => current,
  );
}
