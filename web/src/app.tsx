// The signed-in user, the chosen cluster, and the page that the address names.
import { lazy, Suspense, useEffect, useMemo, useRef, useState, type ReactNode } from "react";
import { I18nProvider } from "react-aria-components";
import { api } from "./api/client";
import { Live } from "./api/live";
import type { Session } from "./api/types";
import { newBuild, reloadIfNew } from "./lib/build";
import { ClusterContext, OverviewContext, SinceContext, useFirstData, useLoadedOverview, useResource, type Cluster } from "./lib/data";
import { useRoute, type Page, type Route } from "./lib/route";
import { loadPalette } from "./ui/launcher";
import { Shell } from "./ui/shell";
import { SignIn } from "./ui/signin";
import { Boundary, Failed, Loading } from "./ui/states";

type View = { default: () => ReactNode };
const files: Record<Page, () => Promise<View>> = {
  overview: () => import("./pages/overview"),
  map: () => import("./pages/map"),
  workloads: () => import("./pages/workloads"),
  decisions: () => import("./pages/decisions"),
  quotas: () => import("./pages/quotas"),
  team: () => import("./pages/team"),
  pools: () => import("./pages/pools"),
  cost: () => import("./pages/cost"),
  "what-if": () => import("./pages/whatif"),
  wall: () => import("./pages/wall"),
};
const views = Object.fromEntries(Object.entries(files).map(([page, file]) => [page, lazy(file)])) as Record<
  Page, React.LazyExoticComponent<() => ReactNode>
>;

/** Loads the files of all pages while nothing else is to do: later they may be gone, with the server or its version. */
function useAllFiles(): void {
  useEffect(() => {
    const load = (): void => {
      // A page that is opened before its file has come reports the failure itself.
      for (const file of [...Object.values(files), loadPalette]) file().catch(() => undefined);
    };
    const timer = setTimeout(load, 1000);
    return () => clearTimeout(timer);
  }, []);
}

export function App(): ReactNode {
  return (
    <I18nProvider locale="en-US">
      <Entry />
    </I18nProvider>
  );
}

function Entry(): ReactNode {
  const namespace = useRoute().params.ns ?? "";
  const [named, setNamed] = useState("");
  const session = useResource(`session|${named}`, (signal) => api.session(named, signal));
  const known = session.data?.namespaces;
  useEffect(() => {
    if (known && namespace && !known.includes(namespace)) setNamed(namespace);
  }, [known, namespace]);
  if (session.error?.status === 401) {
    return <SignIn why={session.error.message} place={session.error.signIn} onToken={session.reload} />;
  }
  if (session.data) return <Signed session={session.data} onRefused={session.reload} />;
  if (session.error) return <Failed error={session.error} what="the dashboard" retry={session.reload} />;
  return <Loading what="the dashboard" />;
}

function Signed({ session, onRefused }: { session: Session; onRefused: () => void }): ReactNode {
  const route = useRoute();
  const { params } = route;
  const name = session.clusters.find((each) => each === params.cluster) ?? session.clusters[0] ?? "";
  const live = useLive(name, session);
  const cluster = useMemo(() => (live ? { session, name, live } : null), [session, name, live]);

  useEffect(
    () =>
      live?.watch(() => {
        if (live.connection.state === "refused" && live.connection.status === 401) onRefused();
      }),
    [live, onRefused],
  );

  // The user's namespaces may have grown by the time that the stream restarts.
  const unasked = (session.unasked_namespaces ?? 0) > 0;
  useEffect(() => (unasked ? live?.on("reset", onRefused) : undefined), [live, unasked, onRefused]);

  return cluster ? <Pages key={name} cluster={cluster} route={route} /> : <Loading what="the dashboard" />;
}

function Pages({ cluster, route: { page } }: { cluster: Cluster; route: Route }): ReactNode {
  const overview = useLoadedOverview(cluster);
  const since = useFirstData(cluster);
  const outdated = useNewBuild(cluster.live, page === "what-if");
  useAllFiles();
  const View = views[page];
  const content = (
    <Boundary key={page}>
      <Suspense fallback={<Loading what="the page" />}>{since === undefined ? <Loading what="the page" /> : <View />}</Suspense>
    </Boundary>
  );
  return (
    <ClusterContext value={cluster}>
      <OverviewContext value={overview}>
        <SinceContext value={since}>
          {page === "wall" ? content : <Shell page={page} outdated={outdated}>{content}</Shell>}
        </SinceContext>
      </OverviewContext>
    </ClusterContext>
  );
}

/**
 * After a reconnection the server may be a newer one: then the page loads again, its state is in the address. `keeps`:
 * the page has text of the user, so it is only said; so is a newer page that loading again did not bring, because a cache
 * between keeps the old one. Returns whether that is to be said.
 */
function useNewBuild(live: Live, keeps: boolean): boolean {
  const [outdated, setOutdated] = useState(false);
  const kept = useRef(keeps);
  kept.current = keeps;
  useEffect(
    () =>
      live.on("reconnected", () => {
        void newBuild().then(async (there) => {
          if (there !== "" && !kept.current && (await reloadIfNew())) return;
          setOutdated(there !== "");
        });
      }),
    [live],
  );
  useEffect(() => {
    if (outdated && !keeps) void reloadIfNew();
  }, [outdated, keeps]);
  return outdated;
}

/** The event stream of a cluster, open while the cluster is shown. */
function useLive(name: string, session: Session): Live | null {
  const [live, setLive] = useState<Live | null>(null);
  useEffect(() => {
    const next = new Live(name);
    next.setServerTime(session.now);
    next.start();
    setLive(next);
    return () => next.stop();
  }, [name, session]);
  return live;
}
