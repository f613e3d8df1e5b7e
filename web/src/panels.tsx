// The panels of one pod and of one GPU.
import type { ReactNode } from "react";
import { api } from "./api/client";
import type { Gpu, Holder, Node, Pod, PodDetail } from "./api/types";
import { useCluster, useEvent, useNow, useRange, useResource } from "./lib/data";
import { ago, clock, duration, memory, metric, metricName, percent, request, writer } from "./lib/format";
import { splitRemedy } from "./lib/pods";
import { href } from "./lib/route";
import { useSeries } from "./lib/series";
import { isHeld } from "./lib/waiting";
import { byMemory, cellsOf, holderName, kindNames, pieceName, shortProduct, teamOf, modeText } from "./map/cells";
import { Chart } from "./ui/chart";
import { Icon } from "./ui/icons";
import { Fact, Facts, Meter, SidePanel } from "./ui/panel";
import { StateMark } from "./ui/podstate";
import { Loaded } from "./ui/states";
import { Timeline } from "./ui/timeline";

interface PodPanelProps {
  namespace: string;
  name: string;
  onClose: () => void;
}

export function PodPanel({ namespace, name, onClose }: PodPanelProps): ReactNode {
  const { name: cluster } = useCluster();
  const pod = useResource(`${cluster}|${namespace}/${name}`, (signal) => api.workload(cluster, namespace, name, signal));
  useEvent("workloads", (data) => {
    const changed = (data as { changed?: Pod[] }).changed ?? [];
    const next = changed.find((each) => each.namespace === namespace && each.name === name);
    if (next) pod.set((last) => ({ ...last, ...next }));
  });
  return (
    <SidePanel
      label={`Pod ${namespace}/${name}`}
      onClose={onClose}
      title={
        <>
          <span className="muted">{namespace}/</span>
          {name}
        </>
      }
    >
      <Loaded resource={pod} what="this pod" rows={6}>
        {(detail) => <PodBody pod={detail} />}
      </Loaded>
    </SidePanel>
  );
}

function PodBody({ pod }: { pod: PodDetail }): ReactNode {
  const now = useNow();
  const range = useRange();
  const maker = pod.job ?? pod.owner;
  const series = useSeries(pod.started ? ["utilization"] : [], [`pod/${pod.namespace}/${pod.name}`], range);
  return (
    <>
      <div className="row">
        <StateMark state={pod.state} />
        <span className="muted">{timeline(pod, now)}</span>
      </div>
      {pod.state === "pending" && <WhyWaiting pod={pod} now={now} />}
      {pod.state !== "pending" && pod.message && <p className="notice">{pod.message}</p>}
      <Facts>
        {maker && (
          <Fact name={maker.kind}>
            <a href={href("workloads", { ns: pod.namespace, job: `${maker.kind}/${maker.name}` })}>{maker.name}</a>
          </Fact>
        )}
        <Fact name="Asks for">
          {Object.entries(pod.requests)
            .map(([resource, amount]) => request(resource, amount))
            .join(", ")}
        </Fact>
        {pod.quota && (
          <Fact name="Quota">
            <a href={href("quotas")}>{pod.quota}</a> {pod.capacity === "over-quota" ? "on borrowed capacity" : ""}
          </Fact>
        )}
        <Fact name="Priority">{pod.priority}</Fact>
        {pod.node && <Fact name="Node">{pod.node}</Fact>}
      </Facts>
      {pod.slices.map((slice) => (
        <a
          key={`${slice.node}/${slice.gpu}/${slice.start}`}
          className="slice"
          href={href("map", { sel: `${slice.node}/${slice.gpu}`, pod: `${pod.namespace}/${pod.name}` })}
        >
          <span>
            <strong>{slice.profile || "whole GPU"}</strong>{" "}
            <span className="muted">
              {slice.node} · GPU {slice.gpu}
              {slice.profile ? ` · ${slice.profile.includes(".") ? "slot" : "share"} ${slice.start}` : ""}
            </span>
          </span>
          <span className="muted">
            {slice.utilization === null ? "utilisation not measured" : `${percent(slice.utilization)} busy`},{" "}
            {memory(slice.memory_used)} used
          </span>
        </a>
      ))}
      {series.data?.of("utilization") && (
        <Chart
          title="Utilisation"
          lines={[{ label: "busy", colour: "--series-1", series: series.data.of("utilization"), band: true }]}
          from={range.from}
          to={range.to}
          write={percent}
          most={1}
          height={120}
        />
      )}
      <Timeline pod={pod} now={now} />
    </>
  );
}

function WhyWaiting({ pod, now }: { pod: Pod; now: number }): ReactNode {
  const { reason, remedy } = splitRemedy(pod.why || pod.message);
  const why = pod.explanation;
  const actions = why?.actions ?? (remedy ? [{ text: remedy, brings: "" }] : []);
  const estimate = why ? why.eta : isHeld(pod) ? null : pod.estimate;
  return (
    <div className="why">
      <p>
        <strong>Why it waits</strong> {why?.headline}
      </p>
      <p className={why ? "muted" : ""}>{why?.cause || reason || "not evaluated yet"}</p>
      {why && why.in_the_way.length > 0 && (
        <p>
          <strong>In the way</strong> {why.in_the_way.join(", ")}
        </p>
      )}
      {actions.map(({ text, brings }, i) => (
        <p className="remedy" key={text}>
          <strong>{i === 0 ? "What would help" : "Or"}</strong> {text}
          {brings && <span className="muted"> ({brings})</span>}
        </p>
      ))}
      <p className="muted">
        {estimate === null
          ? `The start cannot be estimated${why?.eta_reason || pod.estimate_by ? `: ${why?.eta_reason || pod.estimate_by}` : ""}.`
          : estimate <= now
            ? "Expected to start any moment."
            : `Expected to start in ${duration((estimate - now) / 1000)}, at ${clock(estimate, now, false)}`}
        {estimate !== null && estimate > now && bases[pod.estimate_by]}
      </p>
    </div>
  );
}

/** The basis of an estimate. */
const bases: Record<string, string> = {
  plan: ", because plans take this long in this cluster.",
  reclaim: ", when the evicted pods must have ended.",
  history: ", estimated from the run times of similar pods.",
};

function timeline(pod: Pod, now: number): string {
  if (pod.finished) return `ended ${ago(pod.finished, now)}, ran ${duration((pod.finished - pod.started) / 1000)}`;
  if (pod.started) return `for ${duration((now - pod.started) / 1000)}, after waiting ${duration((pod.started - pod.created) / 1000)}`;
  return `for ${duration((now - pod.created) / 1000)}`;
}

interface GpuPanelProps {
  node: Node | undefined;
  gpu: Gpu | undefined;
  place: string;
  past: boolean;
  onClose: () => void;
}

export function GpuPanel({ node, gpu, place, past, onClose }: GpuPanelProps): ReactNode {
  const range = useRange();
  const now = useNow(10_000);
  const measured = gpu?.metrics?.utilization !== undefined;
  const series = useSeries(gpu ? [measured ? "utilization" : "memory_used"] : [], gpu ? [`gpu/${gpu.gpu}`] : [], range);
  const shown = measured ? "utilization" : "memory_used";
  return (
    <SidePanel label={`GPU ${place}`} onClose={onClose} title={place.replace("/", " · GPU ")}>
      {!gpu || !node ? (
        <p className="muted">This GPU is not there {past ? "at this moment" : "any more"}.</p>
      ) : (
        <>
          <p className="muted">
            {shortProduct(gpu.product)}, {memory(gpu.memory)}
            {byMemory(gpu) ? `, ${gpu.slots} GiB for shares` : gpu.slots > 0 ? `, ${gpu.slots} slots` : ", not partitioned"} · reported {ago(node.fresh_at, now)}
          </p>
          <p className="muted">
            Sharing mode: {modeText(gpu)}
            {(gpu.switches ?? []).length > 0 && `; without pods it can switch to ${(gpu.switches ?? []).join(", ")}`}
          </p>
          {gpu.health && (
            <p className="notice bad" role="alert">
              <Icon name="alert" /> {gpu.health}
            </p>
          )}
          {!node.ready && (
            <p className="notice">
              <Icon name="alert" /> The node is not ready; what is shown may be old.
            </p>
          )}
          <Pieces gpu={gpu} />
          <Facts>
            {figuresOf(gpu.metrics ?? {}).map(([name, text]) => (
              <Fact key={name} name={metricName(name)}>
                {text}
              </Fact>
            ))}
            {Object.entries(gpu.unmeasured ?? {}).map(([name, why]) => (
              <Fact key={name} name={metricName(name)}>
                <span className="muted">not measured: {why}</span>
              </Fact>
            ))}
          </Facts>
          {series.data?.of(shown) && (
            <Chart
              title={metricName(shown)}
              lines={[{ label: shortProduct(gpu.product), colour: "--series-1", series: series.data.of(shown), band: true }]}
              from={range.from}
              to={range.to}
              write={writer(shown, series.data.unit(shown))}
              most={measured ? 1 : gpu.memory}
              height={120}
            />
          )}
          <p className="small muted break">{gpu.gpu}</p>
        </>
      )}
    </SidePanel>
  );
}

/** What people look for comes first, with its limit. */
const important = ["utilization", "memory_used", "memory_utilization", "power", "temperature"];
const limits: Record<string, string> = { memory_used: "memory_total", power: "power_limit" };

/** Metrics as text, the important ones first. */
function figuresOf(metrics: Record<string, number>): [string, string][] {
  const rank = (name: string): number => (important.includes(name) ? important.indexOf(name) : important.length);
  return Object.entries(metrics)
    .filter(([name]) => !Object.entries(limits).some(([of, limit]) => limit === name && of in metrics))
    .sort(([a], [b]) => rank(a) - rank(b) || (a < b ? -1 : 1))
    .map(([name, value]) => {
      const limit = metrics[limits[name] ?? ""];
      return [name, limit === undefined ? metric(name, value) : `${metric(name, value)} of ${metric(name, limit)}`];
    });
}

function Pieces({ gpu }: { gpu: Gpu }): ReactNode {
  return (
    <ul className="pieces">
      {cellsOf(gpu).map((cell, place) => (
        <li key={place} data-kind={cell.kind}>
          <span className="piece-name">{pieceName(gpu, cell) || "–"}</span>
          <span className="piece-holder">
            {cell.holders.length === 0 ? (
              <span className="muted">{kindNames[cell.kind]}</span>
            ) : (
              cell.holders.map((holder) => <HolderLink key={holderName(holder)} holder={holder} />)
            )}
          </span>
          {cell.holders.length > 0 && (
            <Meter
              label="Utilisation"
              share={cell.utilization}
              text={cell.utilization === null ? "not measured" : percent(cell.utilization)}
              tone={cell.kind}
            />
          )}
        </li>
      ))}
    </ul>
  );
}

function HolderLink({ holder }: { holder: Holder }): ReactNode {
  return (
    <a className="ellipsis" href={href("workloads", { pod: holderName(holder) })} title={`team ${teamOf(holder)}`}>
      {holderName(holder)}
    </a>
  );
}
