// One namespace for those who work in it: its quota, what waits and why, what runs and whether it is busy.
import { useMemo, type ReactNode } from "react";
import { api } from "../api/client";
import type { Pod, Quota } from "../api/types";
import { loadPods, useBeat, useCluster, useEvent, useGpus, useNow, useOverview, useRange, useResource } from "../lib/data";
import { amount, count, counted, duration, memory, percent } from "../lib/format";
import { compareNames } from "../lib/names";
import { memoryOf } from "../lib/pods";
import { href, setParams, useRoute } from "../lib/route";
import { useSeries } from "../lib/series";
import { busyOf, sinceOf } from "../lib/sort";
import { podsCsv } from "../lib/tables";
import { gigabytesOfGpu, inGpus, quotaName, subjectOf } from "../lib/teams";
import { heldBy, runningFirst } from "../lib/own";
import { groupWaiting, wantedOf } from "../lib/waiting";
import { holdersOn, idleBelow } from "../map/cells";
import { Chart } from "../ui/chart";
import { Choice } from "../ui/controls";
import { Figure } from "../ui/figure";
import { Meter } from "../ui/panel";
import { StateMark } from "../ui/podstate";
import { QuotaBar } from "../ui/quotabar";
import { CsvButton } from "../ui/save";
import { Empty, Loaded } from "../ui/states";
import { stuckAfter, WaitRow } from "../ui/waitrow";

const shown = 200;

export default function TeamPage(): ReactNode {
  const { name, session } = useCluster();
  const { params } = useRoute();
  const gpus = useGpus(undefined, "");
  const quotas = useResource(`quotas|${name}`, (signal) => api.quotas(name, undefined, signal));
  useEvent("quotas", (data) => {
    const next = data as { quotas?: Quota[] };
    if (Array.isArray(next.quotas)) quotas.set(() => ({ quotas: next.quotas ?? [] }));
  });
  useEvent("reset", quotas.reload);
  const namespaces = useMemo(() => {
    const known = new Set(session.namespaces ?? []);
    if (!session.namespaces) {
      for (const quota of quotas.data?.quotas ?? []) for (const each of quota.namespaces) known.add(each);
      for (const gpu of (gpus.data?.nodes ?? []).flatMap((node) => node.gpus)) {
        for (const holder of holdersOn(gpu)) known.add(holder.namespace);
      }
    }
    if (params.ns) known.add(params.ns);
    return [...known].sort(compareNames);
  }, [gpus.data, quotas.data, session.namespaces, params.ns]);
  const namespace = params.ns ?? namespaces[0] ?? "";
  const waits = (gpus.loading && !gpus.data) || (quotas.loading && !quotas.data);
  if (namespace === "") {
    return waits ? null : (
      <Empty title="No namespace is known yet">
        <p>Namespaces appear here with a quota or with a pod that holds a GPU. A link with <code>ns=NAME</code> opens any.</p>
      </Empty>
    );
  }
  return (
    <>
      <div className="toolbar">
        <Choice label="Namespace" prefix="namespace" value={namespace} options={namespaces.map((id) => ({ id, label: id }))} onChange={(ns) => setParams({ ns })} />
        <a href={href("workloads", { ns: namespace })}>All its workloads</a>
        <a href={href("what-if", { in: namespace })}>Simulate a pod here</a>
      </div>
      <Team key={namespace} namespace={namespace} gpus={gpus} quotas={quotas.data?.quotas ?? []} />
    </>
  );
}

function Team({ namespace, gpus, quotas }: { namespace: string; gpus: ReturnType<typeof useGpus>; quotas: Quota[] }): ReactNode {
  const { name } = useCluster();
  const beat = useBeat(10_000);
  const pods = useResource(`team|${name}|${namespace}|${beat}`, (signal) => loadPods(name, { namespace }, signal));
  const own = quotas.filter((quota) => quota.namespaces.includes(namespace));
  const held = useMemo(() => heldBy(gpus.data?.nodes ?? [], namespace), [gpus.data, namespace]);
  return (
    <Loaded resource={pods} what={`the pods of ${namespace}`} rows={6}>
      {(all) => (
        <div className="team">
          <Figures pods={all} held={gpus.data ? held : undefined} quotas={own} />
          <Waiting pods={all} namespace={namespace} />
          <Quotas quotas={own} namespace={namespace} />
          <Running pods={all} namespace={namespace} />
        </div>
      )}
    </Loaded>
  );
}

function Figures({ pods, held, quotas }: { pods: Pod[]; held: ReturnType<typeof heldBy> | undefined; quotas: Quota[] }): ReactNode {
  const now = useNow(10_000);
  const of = (state: Pod["state"]): Pod[] => pods.filter((each) => each.state === state);
  const pending = of("pending");
  const longest = pending.reduce((most, each) => Math.max(most, now - each.created), 0);
  const failed = of("failed").length;
  const borrowed = pods.filter((each) => each.state === "running" && each.capacity === "over-quota").length;
  return (
    <section className="panel figures team-figures" aria-label="Summary">
      <Figure name="GPUs held" value={held ? count(held.gpus) : "…"} note={held ? `on ${counted(held.nodes, "node")}` : ""} />
      <Figure name="Idle" value={held ? count(held.idle) : "…"} note="GPUs, below 5 % busy" tone={held && held.idle >= 0.05 ? "warn" : ""} />
      <Figure name="Running" value={count(of("running").length)} note={borrowed > 0 ? `${counted(borrowed, "pod")} on borrowed capacity` : "pods"} more={borrowed > 0 ? "first to be evicted" : ""} />
      <Figure
        name="Waiting" value={count(pending.length)} note={pending.length > 0 ? `longest ${duration(longest / 1000)}` : "pods"}
        tone={longest > stuckAfter ? "warn" : ""}
      />
      <Figure name="Failed" value={count(failed)} note="in the last hour" tone={failed > 0 ? "warn" : ""} />
      {quotas.length === 0 && <Figure name="Quota" value="none" note="its pods count against no quota" />}
    </section>
  );
}

function Waiting({ pods, namespace }: { pods: Pod[]; namespace: string }): ReactNode {
  const now = useNow();
  const groups = useMemo(() => groupWaiting(pods), [pods]);
  return (
    <section className="panel" aria-labelledby="team-waiting">
      <h2 id="team-waiting"><a href={href("workloads", { ns: namespace, state: "pending" })}>Waiting, longest first</a></h2>
      {groups.length === 0 ? <p className="muted">No pod of this namespace waits for a GPU.</p> : (
        <div className="team-rows" tabIndex={0} role="region" aria-label="Waiting pods">
          <ul className="lines">
            {groups.slice(0, 100).map((group) => <WaitRow key={group.key} group={group} now={now} />)}
            {groups.length > 100 && <li className="muted">and {groups.length - 100} more groups</li>}
          </ul>
        </div>
      )}
    </section>
  );
}

function Quotas({ quotas, namespace }: { quotas: Quota[]; namespace: string }): ReactNode {
  const range = useRange();
  const gigabytes = gigabytesOfGpu(useOverview().data);
  const lines = quotas.flatMap((quota) => Object.entries(quota.resources).map(([resource, amounts]) => ({ quota, resource, amounts })));
  const first = lines[0];
  const series = useSeries(first ? ["used", "guaranteed"] : [], first ? [subjectOf(first.quota, first.resource)] : [], range);
  const text = (resource: string, value: number): string => {
    const gpus = resource === "nvidia.com/gpu" ? null : inGpus(resource, value, gigabytes);
    return `${amount(resource, Math.round(value * 10) / 10)}${gpus === null ? "" : ` (${counted(Math.round(gpus * 10) / 10, "GPU")})`}`;
  };
  return (
    <section className="panel" aria-labelledby="team-quota">
      <h2 id="team-quota"><a href={href("quotas")}>Quota</a></h2>
      {lines.length === 0 && <p className="muted">No ElasticQuota covers {namespace}: its pods take what is free, and nothing is guaranteed to them.</p>}
      {lines.map(({ quota, resource, amounts }) => (
        <div key={`${quotaName(quota)} ${resource}`} className="team-quota-line">
          <div className="line-head">
            <span className="ellipsis">{resource.replace(/^[^/]*\//, "")} <span className="muted">{quota.namespaces.length > 1 ? `${quotaName(quota)}, shared by ${quota.namespaces.length} namespaces` : ""}</span></span>
            <span className="strong nowrap">{text(resource, amounts.used)}</span>
          </div>
          <QuotaBar amounts={amounts} most={Math.max(1, amounts.used, amounts.guaranteed, amounts.min, amounts.max ?? 0)} />
          <p className="muted small">
            min {text(resource, amounts.min)}, guaranteed {text(resource, amounts.guaranteed)}
            {amounts.max !== undefined && `, max ${text(resource, amounts.max)}`}
            {amounts.borrowed > 0 && `, borrows ${text(resource, amounts.borrowed)}`}
            {amounts.lent > 0 && `, lends ${text(resource, amounts.lent)}`}
          </p>
        </div>
      ))}
      {first && series.data && (
        <Chart
          title="Use of the quota" note={first.resource.replace(/^[^/]*\//, "")} from={range.from} to={range.to} height={130} brief
          write={(value) => amount(first.resource, value === null || value === undefined ? value : Math.round(value))}
          lines={[
            { label: "Used", colour: "--series-1", series: series.data.of("used"), band: true },
            { label: "Guaranteed", colour: "--muted", dash: [2, 3], series: series.data.of("guaranteed") },
          ]}
        />
      )}
    </section>
  );
}

function Running({ pods, namespace }: { pods: Pod[]; namespace: string }): ReactNode {
  const now = useNow(10_000);
  const listed = useMemo(() => runningFirst(pods), [pods]);
  return (
    <section className="panel team-running" aria-labelledby="team-running">
      <div className="answer-head">
        <h2 id="team-running">Pods on GPUs, idle ones first <span className="muted">{counted(listed.length, "pod")}</span></h2>
        {pods.length > 0 && <CsvButton small what={`pods of ${namespace}`} make={() => podsCsv(pods)} />}
      </div>
      {listed.length === 0 ? <p className="muted">No pod of this namespace holds a GPU.</p> : (
        <div className="table-scroll" tabIndex={0} role="region" aria-label="Pods on GPUs">
          <table className="table workloads">
            <thead>
              <tr>
                <th scope="col">State</th>
                <th scope="col">Pod</th>
                <th scope="col">Asks for</th>
                <th scope="col">GPUs</th>
                <th scope="col" className="wide">Busy</th>
                <th scope="col" className="number">Memory</th>
                <th scope="col" className="number">Since</th>
              </tr>
            </thead>
            <tbody>
              {listed.slice(0, shown).map((pod) => <Row key={pod.uid} pod={pod} now={now} />)}
            </tbody>
          </table>
        </div>
      )}
      {listed.length > shown && <p className="muted">{count(listed.length - shown)} more are on the page <a href={href("workloads", { ns: namespace, state: "running" })}>Workloads</a>.</p>}
    </section>
  );
}

function Row({ pod, now }: { pod: Pod; now: number }): ReactNode {
  const full = `${pod.namespace}/${pod.name}`;
  const busy = busyOf(pod);
  const idle = busy !== null && busy < idleBelow;
  return (
    <tr>
      <td data-label="State"><StateMark state={pod.state} /></td>
      <th scope="row" data-label="Pod">
        <a href={href("workloads", { ns: pod.namespace, pod: full })}>{pod.name}</a>
        {pod.capacity === "over-quota" && <span className="tag">borrowed</span>}
        {idle && <span className="tag" data-type="reclaim">idle</span>}
      </th>
      <td data-label="Asks for">{wantedOf(pod)}</td>
      <td className="where" data-label="GPUs">
        {pod.slices.length === 0 ? pod.node : pod.slices.map((slice) => (
          <a key={`${slice.node}/${slice.gpu}/${slice.start}`} className="nowrap" href={href("map", { sel: `${slice.node}/${slice.gpu}`, pod: full })}>
            {slice.node} · GPU {slice.gpu}{" "}
          </a>
        ))}
      </td>
      <td className="wide" data-label="Busy">
        {busy === null ? <span className="muted">not measured</span> : <Meter label="Utilisation" share={busy} text={percent(busy)} tone={idle ? "idle" : "busy"} />}
      </td>
      <td className="number" data-label="Memory">{memory(memoryOf(pod))}</td>
      <td className="number since" data-label="Since">{duration((now - sinceOf(pod)) / 1000)}</td>
    </tr>
  );
}
