// The frame of all pages: navigation, cluster and time, and the age of the data.
import { useContext, useEffect, useSyncExternalStore, type ReactNode } from "react";
import { Button } from "react-aria-components";
import { signOut } from "../api/client";
import { SinceContext, useAt, useCluster, useNow, useRange } from "../lib/data";
import { entryOf, type Entry } from "../lib/find";
import { ago, clock, duration } from "../lib/format";
import { automatic, longestAuto, ranges } from "../lib/range";
import { href, pages, setParams, useRoute, type Page } from "../lib/route";
import { setTheme, useTheme, type Theme } from "../lib/theme";
import { openWall } from "../lib/wall";
import { isTyping } from "./typing";
import { Choice, IconButton, type Option } from "./controls";
import { Icon } from "./icons";
import { Launcher } from "./launcher";
import { ShareButton } from "./share";
import { titles } from "./titles";
import { Unasked } from "./unasked";

const actions: readonly Entry[] = [
  { ...entryOf("action", "Wall mode", "large figures that take turns, without controls · w", "", ["full screen tv kiosk"]), link: undefined, run: openWall },
  ...(["light", "dark", "system"] as const).map((theme) => ({
    ...entryOf("action", theme === "system" ? "Colours as the system has them" : `${theme === "dark" ? "Dark" : "Light"} colours`, "", "", ["theme mode"]),
    link: undefined, run: () => setTheme(theme),
  })),
];

/** The key w opens the wall. */
function useWallKey(): void {
  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      if (event.key !== "w" || event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
      if (!document.querySelector("[role=dialog], [role=alertdialog], [role=listbox], [role=menu]")) openWall();
    };
    document.addEventListener("keydown", onKey);
    return () => document.removeEventListener("keydown", onKey);
  }, []);
}

export function Shell({ page, outdated, children }: { page: Page; outdated: boolean; children: ReactNode }): ReactNode {
  const { name, session } = useCluster();
  useWallKey();
  useEffect(() => {
    document.title = `${titles[page]} · ${name} · nos`;
  }, [page, name]);
  return (
    <div className="shell">
      <a className="skip" href="#content" onClick={skip}>
        Skip to content
      </a>
      <nav className="nav" aria-label="Pages">
        <a className="brand" href={href("overview")} aria-label="nos, overview">
          <Mark />
          <span>nos</span>
        </a>
        {pages.map((each) => (
          <a key={each} className="nav-link" href={href(each)} aria-current={each === page ? "page" : undefined}>
            <Icon name={each} />
            <span>{titles[each]}</span>
          </a>
        ))}
        <div className="nav-foot muted">
          <span className="ellipsis" title={session.user}>
            {session.sandbox ? "sandbox" : session.user}
          </span>
          <span>{session.version}</span>
          {session.sign_out && <SignOut place={session.sign_out} />}
        </div>
      </nav>
      <header className="top">
        <h1>{titles[page]}</h1>
        <div className="top-tools">
          <Launcher actions={actions} />
          <Where page={page} />
          <Freshness />
          <ShareButton />
          <ThemeSwitch />
        </div>
      </header>
      <main className="content" id="content" tabIndex={-1}>
        <Unasked />
        {outdated && (
          <p className="notice row" role="status">
            <span className="grow">The server has a newer version of this page.{page === "what-if" && " Reloading it clears what was written as YAML; the form stays."}</span>
            <Button className="button small" onPress={() => window.location.reload()}>Reload</Button>
          </p>
        )}
        {children}
      </main>
    </div>
  );
}

function SignOut({ place }: { place: string }): ReactNode {
  return (
    <Button className="button small" onPress={() => void signOut(place).finally(() => location.reload())}>
      Sign out
    </Button>
  );
}

function skip(event: React.MouseEvent): void {
  // The fragment of the address holds the page's state, so the link must not change it.
  event.preventDefault();
  document.getElementById("content")?.focus();
}

function Mark(): ReactNode {
  return (
    <svg className="mark" viewBox="0 0 16 16" width="18" height="18" aria-hidden="true">
      <rect x="1" y="2" width="6" height="3" rx="0.7" className="mark-a" />
      <rect x="8.500" y="2" width="6.500" height="3" rx="0.7" className="mark-c" />
      <rect x="1" y="6.500" width="14" height="3" rx="0.7" className="mark-b" />
      <rect x="1" y="11" width="3" height="3" rx="0.7" className="mark-a" />
      <rect x="5.500" y="11" width="9.500" height="3" rx="0.7" className="mark-a" />
    </svg>
  );
}

/** Cluster, namespace and time range: the part of the address that all pages share. */
function Where({ page }: { page: Page }): ReactNode {
  const { session, name } = useCluster();
  const { params } = useRoute();
  const own = session.namespaces;
  // A namespace that the user has named is added to the list.
  const namespaces = own && params.ns && !own.includes(params.ns) ? [...own, params.ns] : own;
  return (
    <>
      {session.clusters.length > 1 && (
        <Choice
          label="Cluster"
          prefix="cluster"
          value={name}
          options={session.clusters.map((id) => ({ id, label: id }))}
          onChange={(cluster) => setParams({ cluster, sel: "", pod: "" })}
        />
      )}
      {namespaces && namespaces.length > 0 && (page === "map" || page === "workloads") && (
        <Choice
          label="Namespace"
          prefix="namespace"
          value={params.ns ?? ""}
          options={[{ id: "", label: "all of mine" }, ...namespaces.map((id) => ({ id, label: id }))]}
          onChange={(ns) => setParams({ ns })}
        />
      )}
      {!["what-if", "workloads", "pools", "cost"].includes(page) && <RangeChoice />}
    </>
  );
}

function RangeChoice(): ReactNode {
  const range = useRange();
  const since = useContext(SinceContext);
  const young = since !== undefined && since > 0 && range.to - since < longestAuto;
  const options: Option[] = [{ id: automatic, label: young ? "all data" : "latest" }];
  for (const { id, label } of ranges) options.push({ id, label });
  if (range.id === "custom") options.push({ id: "custom", label: "selected" });
  return (
    <Choice
      label="Time"
      prefix="range"
      value={range.id}
      options={options}
      onChange={(id) => {
        if (id !== "custom") setParams({ range: id === automatic ? "" : id, from: "", to: "" });
      }}
    />
  );
}

/** ", clock 8×" for a sandbox that runs faster or slower than real time. */
export function speedText(speed: number): string {
  if (speed === 1) return "";
  return `, clock ${speed >= 1.5 ? Math.round(speed) : speed.toFixed(1).replace(/\.0$/, "")}×`;
}

/** Three reporting intervals of ten seconds: older data is shown as outdated. */
export const staleAfter = 30_000;

export function Freshness(): ReactNode {
  const { live } = useCluster();
  const at = useAt();
  const now = useNow();
  const connection = useSyncExternalStore(live.watch, () => live.connection);
  const freshAt = useSyncExternalStore(live.watch, () => live.freshAt);
  // A faster clock makes no report later in real time.
  const age = (now - freshAt) / Math.max(1, live.speed());
  if (at !== undefined) {
    return (
      <div className="fresh" data-state="past">
        <span className="dot" />
        <span role="status">
          As of {clock(at, now)}, {ago(at, now)}
        </span>
        <button type="button" className="link" onClick={() => setParams({ at: "" })}>
          Back to now
        </button>
      </div>
    );
  }
  const [state, word, detail] = (() => {
    switch (connection.state) {
      case "live":
        if (freshAt === 0) return ["live", "Live", "no data yet"] as const;
        if (age > staleAfter) return ["stale", "Old data", `from ${ago(freshAt, now)}`] as const;
        return ["live", "Live", `data ${duration(Math.max(0, now - freshAt) / 1000)} old${speedText(live.speed())}`] as const;
      case "connecting":
        return ["wait", "Connecting", freshAt ? `data from ${ago(freshAt, now)}` : ""] as const;
      case "waiting":
        return [
          "stale",
          "Reconnecting",
          `in ${duration(Math.max(1, (connection.retryAt - Date.now()) / 1000))}; data from ${freshAt ? ago(freshAt, now) : "before"}`,
        ] as const;
      case "refused":
        return ["stale", "No live updates", connection.why] as const;
    }
  })();
  return (
    <div className="fresh" data-state={state} title={connection.state === "waiting" ? connection.why : undefined}>
      <span className="dot" />
      <span role="status">{word}</span>
      <span className="muted fresh-detail">{detail}</span>
    </div>
  );
}

const themes: readonly { id: Theme; icon: "auto" | "sun" | "moon"; label: string; next: Theme }[] = [
  { id: "system", icon: "auto", label: "Colours as the system has them; switch to light", next: "light" },
  { id: "light", icon: "sun", label: "Light colours; switch to dark", next: "dark" },
  { id: "dark", icon: "moon", label: "Dark colours; switch to the system's", next: "system" },
];

function ThemeSwitch(): ReactNode {
  const theme = useTheme();
  const { icon, label, next } = themes.find((each) => each.id === theme) ?? themes[0]!;
  return <IconButton label={label} icon={icon} onPress={() => setTheme(next)} />;
}
