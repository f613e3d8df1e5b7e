// Search over everything that has a name: entries, and their order for a text.
import type { Gpus, Pod, Quota } from "../api/types";
import { holdersOn, shortProduct } from "../map/cells";
import { compareNames } from "./names";
import { href } from "./route";
import { causeOf, wantedOf } from "./waiting";

export const kinds = ["page", "action", "namespace", "pod", "node", "gpu"] as const;
export type Kind = (typeof kinds)[number];

export interface Entry {
  kind: Kind;
  /** Unique among all entries. */
  key: string;
  title: string;
  note: string;
  /** Everything by which it is found, in small letters; begins with the title. */
  words: string;
  /** Either an address of the dashboard or an action. */
  link?: string;
  run?: () => void;
}

export const kindTitles: Record<Kind, string> = {
  page: "Pages", action: "Actions", namespace: "Namespaces and quotas", pod: "Pods", node: "Nodes", gpu: "GPUs",
};

const longest = 200;
const mostSorted = 1000;

/** Words of the query, in small letters: all of them must be found. */
export function termsOf(query: string): string[] {
  return query.slice(0, longest).toLowerCase().split(/\s+/).filter(Boolean);
}

const isWord = (text: string, at: number): boolean => /[a-z0-9]/.test(text[at] ?? "");

/**
 * Better matches are smaller: the title itself, its beginning, the beginning of a word in it, inside it, elsewhere; of
 * two such, the one that ends where a word ends.
 */
function rankOf({ title, words }: Entry, term: string): number | undefined {
  const at = words.indexOf(term);
  if (at < 0) return undefined;
  const end = at + term.length;
  const half = isWord(words, end) ? 0.5 : 0;
  if (end > title.length) return 4 + half;
  if (at === 0) return end === title.length ? 0 : 1 + half;
  return (isWord(words, at - 1) ? 3 : 2) + half;
}

function rankOfAll(entry: Entry, terms: readonly string[]): number | undefined {
  let worst = 0;
  for (const term of terms) {
    const rank = rankOf(entry, term);
    if (rank === undefined) return undefined;
    worst = Math.max(worst, rank);
  }
  return worst;
}

export interface Results {
  kind: Kind;
  entries: Entry[];
  /** Further matches that are not in `entries`. */
  more: number;
}

/** Matches by kind, the kind of the best match first. `each`: entries of a kind that are returned. */
export function find(all: readonly Entry[], query: string, each = 5): Results[] {
  const terms = termsOf(query);
  const found = new Map<Kind, { entry: Entry; rank: number }[]>();
  for (const entry of all) {
    const rank = rankOfAll(entry, terms);
    if (rank === undefined) continue;
    const same = found.get(entry.kind);
    if (same) same.push({ entry, rank });
    else found.set(entry.kind, [{ entry, rank }]);
  }
  return [...found]
    .map(([kind, matches]) => {
      const best = matches.reduce((least, { rank }) => Math.min(least, rank), 9);
      // The order of names is slow, and of no use before the text is longer.
      const names = matches.length <= mostSorted ? compareNames : (): number => 0;
      if (terms.length > 0) matches.sort((a, b) => a.rank - b.rank || names(a.entry.title, b.entry.title));
      return { kind, best, entries: matches.slice(0, each).map(({ entry }) => entry), more: Math.max(0, matches.length - each) };
    })
    .sort((a, b) => (terms.length > 0 ? a.best - b.best : 0) || kinds.indexOf(a.kind) - kinds.indexOf(b.kind))
    .map(({ kind, entries, more }) => ({ kind, entries, more }));
}

export function entryOf(kind: Kind, title: string, note: string, link: string, more: readonly string[] = []): Entry {
  return { kind, key: `${kind} ${title}`, title, note, link, words: [title, note, ...more].join(" ").toLowerCase() };
}

/** Nodes and their GPUs; a GPU is also found by the UUIDs of its MIG instances. */
export function gpuEntries(gpus: Gpus | undefined): Entry[] {
  return (gpus?.nodes ?? []).flatMap((node) => {
    const models = [...new Set(node.gpus.map((gpu) => shortProduct(gpu.product)))].join(", ");
    const first = node.gpus[0]?.index ?? 0;
    const own = entryOf("node", node.node, `${node.gpus.length} × ${models || "no GPU"}${node.ready ? "" : ", not ready"}`, href("map", { sel: `${node.node}/${first}` }));
    return [
      own,
      ...node.gpus.map((gpu) =>
        entryOf(
          "gpu", `${node.node} · GPU ${gpu.index}`, gpu.gpu, href("map", { sel: `${node.node}/${gpu.index}` }),
          [shortProduct(gpu.product), `${node.node}/${gpu.index}`, ...gpu.instances.map((each) => each.instance)],
        ),
      ),
    ];
  });
}

/** Namespaces that have a quota, hold a GPU, or are the user's. */
export function namespaceEntries(gpus: Gpus | undefined, quotas: readonly Quota[], own: readonly string[]): Entry[] {
  const notes = new Map<string, string>(own.map((name) => [name, ""]));
  for (const node of gpus?.nodes ?? []) {
    for (const gpu of node.gpus) {
      for (const holder of holdersOn(gpu)) notes.set(holder.namespace, "");
    }
  }
  for (const quota of quotas) {
    for (const name of quota.namespaces) notes.set(name, `${quota.type} ${quota.namespace}/${quota.name}`);
  }
  return [...notes].sort(([a], [b]) => compareNames(a, b)).map(([name, note]) => entryOf("namespace", name, note, href("team", { ns: name })));
}

export function podEntries(pods: readonly Pod[]): Entry[] {
  return pods.map((pod) => {
    const where = pod.state === "pending" ? `pending: ${causeOf(pod).title.toLowerCase()}` : `${pod.state}${pod.node ? ` on ${pod.node}` : ""}`;
    const name = `${pod.namespace}/${pod.name}`;
    const entry = entryOf("pod", name, `${where} · ${wantedOf(pod)}`, href("workloads", { ns: "", pod: name }), [(pod.job ?? pod.owner)?.name ?? "", pod.quota]);
    return { ...entry, key: `pod ${pod.uid}` };
  });
}

/**
 * The question to the server, which looks for one text in the pod's name, namespace, node, quota and job: the longest
 * word. "team/train-3": the namespace is asked for exactly, if it is one.
 */
export function podQuery(query: string, namespaces: ReadonlySet<string>): { q: string; namespace?: string } | undefined {
  const terms = termsOf(query);
  const [before = "", after] = (terms.find((term) => term.includes("/")) ?? "").split("/", 2);
  if (after !== undefined && namespaces.has(before)) return { q: after, namespace: before };
  const words = terms.flatMap((term) => term.split("/"));
  const q = words.reduce((best, term) => (term.length > best.length ? term : best), "");
  return q.length >= 2 ? { q } : undefined;
}
