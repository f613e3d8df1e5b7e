// Search over pods, nodes, GPUs, namespaces and pages: a combobox with a list of options in groups.
import { useEffect, useId, useMemo, useRef, useState, type ReactNode } from "react";
import { Dialog, Modal, ModalOverlay } from "react-aria-components";
import { api } from "../api/client";
import type { Gpus, Pod, Quota } from "../api/types";
import { useCluster, useResource } from "../lib/data";
import { entryOf, find, gpuEntries, kindTitles, namespaceEntries, podEntries, podQuery, type Entry, type Kind } from "../lib/find";
import { counted } from "../lib/format";
import { href, pages } from "../lib/route";
import { useThrottled } from "../lib/throttle";
import { Icon, type IconName } from "./icons";
import { titles } from "./titles";

/** Other words for a page. */
const meanings: Record<(typeof pages)[number], string> = {
  overview: "summary use attention", map: "nodes slots heat replay history", workloads: "pods jobs queues pending waiting",
  decisions: "plans evictions preemption reclaim repartitioning scale", quotas: "elastic quota min max borrow lend",
  team: "namespace mine my pods gpus quota",
  pools: "autoscaler nodes price cost", cost: "money price bill month forecast showback waste currency", "what-if": "simulate submit try",
};

const icons: Record<Kind, IconName> = { page: "right", action: "play", namespace: "quotas", pod: "workloads", node: "pools", gpu: "map" };

/** Pods that are asked for at once: more than are shown, because the server looks for one word only. */
const asked = 200;
/** Names of nodes and GPUs are loaded again when they are older than this, in milliseconds. */
const keptFor = 30_000;

interface Names {
  at: number;
  gpus: Gpus | undefined;
  quotas: Quota[];
  /** Why nodes and GPUs could not be loaded; empty if they were. */
  missing: string;
}

const known = new Map<string, Names>();

async function loadNames(cluster: string, signal: AbortSignal): Promise<Names> {
  const last = known.get(cluster);
  if (last && Date.now() - last.at < keptFor) return last;
  const [gpus, quotas] = await Promise.allSettled([api.gpus(cluster, undefined, undefined, signal), api.quotas(cluster, undefined, signal)]);
  const names: Names = {
    at: Date.now(), gpus: gpus.status === "fulfilled" ? gpus.value : undefined,
    quotas: quotas.status === "fulfilled" ? quotas.value.quotas : [],
    missing: gpus.status === "rejected" && !signal.aborted ? String((gpus.reason as Error).message) : "",
  };
  if (gpus.status === "fulfilled") {
    known.clear(); // of one cluster at a time
    known.set(cluster, names);
  }
  return names;
}

const pageEntries = (): Entry[] => pages.map((page) => entryOf("page", titles[page], "", href(page), [meanings[page]]));

export default function Palette({ actions, onClose }: { actions: readonly Entry[]; onClose: () => void }): ReactNode {
  return (
    <ModalOverlay className="overlay palette-overlay" isOpen isDismissable onOpenChange={(open) => !open && onClose()}>
      <Modal className="modal palette">
        <Dialog className="palette-dialog" aria-label="Search">
          <Body actions={actions} onClose={onClose} />
        </Dialog>
      </Modal>
    </ModalOverlay>
  );
}

function Body({ actions, onClose }: { actions: readonly Entry[]; onClose: () => void }): ReactNode {
  const { name, session } = useCluster();
  const id = useId();
  const list = useRef<HTMLDivElement>(null);
  const [query, setQuery] = useState("");
  const [place, setPlace] = useState(0);
  const names = useResource(`names|${name}`, (signal) => loadNames(name, signal));
  const rested = useThrottled(query, 120);
  const namespaces = useMemo(
    () => namespaceEntries(names.data?.gpus, names.data?.quotas ?? [], session.namespaces ?? []),
    [names.data, session.namespaces],
  );
  const still = useMemo(() => [...pageEntries(), ...actions, ...namespaces, ...gpuEntries(names.data?.gpus)], [names.data, namespaces, actions]);
  const question = useMemo(() => podQuery(rested, new Set(namespaces.map((each) => each.title))), [rested, namespaces]);
  const pods = useResource<Pod[]>(question ? `find|${name}|${question.namespace ?? ""}|${question.q}` : "", async (signal) =>
    (await api.workloads(name, { ...question, limit: asked }, signal)).pods,
  );
  const results = useMemo(() => {
    const empty = query.trim() === "";
    const all = empty ? still.filter((each) => each.kind === "page" || each.kind === "action") : [...still, ...podEntries(question ? (pods.data ?? []) : [])];
    const found = find(all, query, empty ? 20 : 5);
    // The only kind has the room of the others.
    return found.length === 1 ? find(all, query, 20) : found;
  }, [still, pods.data, question, query]);
  const entries = results.flatMap((each) => each.entries);
  const chosen = entries[Math.min(place, entries.length - 1)];
  useEffect(() => {
    list.current?.querySelector("[aria-selected=true]")?.scrollIntoView({ block: "nearest" });
  }, [chosen?.key]);

  const go = (entry: Entry | undefined, elsewhere: boolean): void => {
    if (!entry) return;
    if (entry.link && elsewhere) {
      window.open(new URL(entry.link, window.location.href), "_blank", "noopener");
      return;
    }
    onClose();
    if (entry.link) window.location.hash = entry.link;
    entry.run?.();
  };
  const step = (by: number): void => {
    if (entries.length === 0) return;
    const from = Math.min(place, entries.length - 1);
    setPlace((from + by + entries.length) % entries.length);
  };
  /** The first entry of the next group, or of the one before. */
  const leap = (down: boolean): void => {
    let at = 0;
    const firsts = results.map((each) => (at += each.entries.length) - each.entries.length);
    const next = down ? firsts.find((each) => each > place) : firsts.findLast((each) => each < place);
    setPlace(next ?? (down ? entries.length - 1 : 0));
  };
  const onKeyDown = (event: React.KeyboardEvent): void => {
    if (event.nativeEvent.isComposing) return;
    const keys: Record<string, () => void> = {
      ArrowDown: () => step(1), ArrowUp: () => step(-1), PageDown: () => leap(true), PageUp: () => leap(false),
      Enter: () => go(chosen, event.ctrlKey || event.metaKey),
    };
    const act = keys[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  };
  const busy = pods.loading || names.loading || rested !== query;
  const optionId = (entry: Entry): string => `${id}-${entries.indexOf(entry)}`;
  return (
    <>
      <div className="palette-field">
        <Icon name="search" />
        <input
          type="text" role="combobox" aria-label="Search for pods, nodes, GPUs, namespaces and pages" aria-expanded aria-autocomplete="list"
          aria-controls={`${id}-list`} aria-activedescendant={chosen ? optionId(chosen) : undefined}
          placeholder="Pod, node, GPU or MIG UUID, namespace, page" autoFocus maxLength={200} spellCheck={false} autoComplete="off"
          value={query}
          onChange={(event) => {
            setQuery(event.target.value);
            setPlace(0);
          }}
          onKeyDown={onKeyDown}
        />
        <kbd>Esc</kbd>
      </div>
      <div ref={list} id={`${id}-list`} role="listbox" aria-label="Results" className="palette-list">
        {results.map((group) => (
          <div key={group.kind} role="group" aria-labelledby={`${id}-${group.kind}`}>
            <div id={`${id}-${group.kind}`} role="presentation" className="palette-kind">
              {kindTitles[group.kind]} {group.more > 0 && `· ${group.more} more, type on to find them`}
            </div>
            {group.entries.map((entry) => (
              <div
                key={entry.key} id={optionId(entry)} role="option" aria-selected={entry === chosen} className="palette-option"
                onPointerMove={() => setPlace(entries.indexOf(entry))} onClick={(event) => go(entry, event.ctrlKey || event.metaKey)}
              >
                <Icon name={icons[entry.kind]} />
                <span className="palette-title">{entry.title}</span>
                <span className="muted ellipsis">{entry.note}</span>
              </div>
            ))}
          </div>
        ))}
      </div>
      <p className="palette-foot muted small">
        <span role="status">
          {entries.length > 0 ? counted(entries.length, "result") : busy ? "Searching…" : query.trim() ? "Nothing is called so." : ""}
        </span>
        {pods.error && question && <span className="warn-text">Pods were not searched: {pods.error.message}</span>}
        {names.data?.missing && <span className="warn-text">Nodes and GPUs are not searched: {names.data.missing}</span>}
        <span className="palette-keys"><kbd>↑</kbd> <kbd>↓</kbd> choose, <kbd>Enter</kbd> opens</span>
      </p>
    </>
  );
}
