// Use of the cluster's GPUs, pending pods, and recent decisions.
import { useMemo, type ReactNode } from "react";
import { api } from "../api/client";
import type { Decision, Overview, Pod } from "../api/types";
import { partsOf } from "../lib/capacity";
import { useCluster, useEvent, useGpus, useNow, useOverview, useRange, useResource } from "../lib/data";
import { ago, clock, count, counted, duration, percent, request } from "../lib/format";
import { byTime, madeAt, withDecision } from "../lib/layouts";
import { splitRemedy } from "../lib/pods";
import { href } from "../lib/route";
import { useSeries } from "../lib/series";
import { shortProduct } from "../map/cells";
import { Chart, type Line } from "../ui/chart";
import { Icon } from "../ui/icons";
import { Meter } from "../ui/panel";
import { Empty, Loaded } from "../ui/states";

export default function OverviewPage(): ReactNode {
  const overview = useOverview();
  return (
    <Loaded resource={overview} what="the overview of the cluster" rows={6}>
      {(data) =>
        data.nodes === 0 ? (
          <Empty title="No node reports yet">
            <p>
              Nodes appear as soon as their agent sends its first report. Nodes that nos partitions carry the label{" "}
              <code>nos.nebuly.com/gpu-partitioning</code>.
            </p>
          </Empty>
        ) : (
          <Body overview={data} />
        )
      }
    </Loaded>
  );
}

function Body({ overview }: { overview: Overview }): ReactNode {
  return (
    <div className="overview">
      <Capacity overview={overview} />
      <Trends />
      <div className="columns">
        <Waiting />
        <Recent />
        <div className="stacked">
          <Attention />
          <Models overview={overview} />
        </div>
      </div>
    </div>
  );
}

function Capacity({ overview }: { overview: Overview }): ReactNode {
  const parts = partsOf(overview);
  return (
    <section className="panel capacity" aria-labelledby="capacity">
      <div className="figures">
        <Figure name="Allocated" value={percent(overview.allocated)} note={`of ${counted(overview.gpus, "GPU")}`} />
        <Figure
          name="Computing"
          value={overview.used === null ? "not measured" : percent(overview.used)}
          note="allocated × busy"
        />
        <Figure name="Pending pods" value={count(overview.pods.pending ?? 0)} note={`${count(overview.pods.running ?? 0)} running`} href={href("workloads", { state: "pending" })} />
        <Figure name="Time to slice" value={duration(overview.seconds_to_slice)} note="median, last hour" />
        <Figure
          name="Nodes"
          value={count(overview.nodes)}
          note={overview.stale_nodes > 0 ? `${count(overview.stale_nodes)} silent` : "all report"}
          tone={overview.stale_nodes > 0 ? "warn" : ""}
        />
      </div>
      <h2 id="capacity" className="hidden">
        Where all slots are
      </h2>
      <div className="capacity-bar" aria-hidden="true">
        {parts.map((part) => (
          <span key={part.id} className="capacity-part" data-part={part.id} style={{ flexGrow: part.share }} title={`${part.label} ${percent(part.share)}`} />
        ))}
      </div>
      <ul className="capacity-legend">
        {parts.map((part) => (
          <li key={part.id} title={part.help}>
            <span className="swatch" data-part={part.id} aria-hidden="true" />
            <span>{part.label}</span>
            <strong>{percent(part.share)}</strong>
            <span className="hidden">{part.help}</span>
          </li>
        ))}
      </ul>
    </section>
  );
}

interface FigureProps {
  name: string;
  value: string;
  note: string;
  href?: string;
  tone?: string;
}

function Figure({ name, value, note, href: link, tone }: FigureProps): ReactNode {
  return (
    <div className="figure" data-tone={tone}>
      <div className="figure-name">{link ? <a href={link}>{name}</a> : name}</div>
      <div className="figure-value">{value}</div>
      <div className="figure-note">{note}</div>
    </div>
  );
}

const metrics = ["allocated", "used", "idle", "fragmented", "stranded", "pods_pending", "seconds_to_slice"] as const;

const plotHeight = 118;
const spans = [1, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200, 21_600, 86_400];

function Trends(): ReactNode {
  const range = useRange();
  const series = useSeries(metrics, ["cluster"], range);
  const { name } = useCluster();
  const decisions = useResource(`marks|${name}|${range.from}|${range.to}`, (signal) =>
    api.decisions(name, { from: Math.round(range.from), to: Math.round(range.to), limit: 1000 }, signal),
  );
  const marks = useMemo(
    () => decisions.data?.decisions.map((each) => ({ at: madeAt(each), failed: each.state === "failed" })) ?? [],
    [decisions.data],
  );
  return (
    <Loaded resource={series} what="trends" rows={5}>
      {(data) => {
        const line = (metric: string, label: string, colour: string, dash?: number[], help?: string): Line => ({
          label, colour, dash, help, series: data.of(metric),
        });
        return (
          <div className="charts">
            <Chart
              title="Use of all slots"
              note={marks.length > 0 ? `${counted(marks.length, "decision")} marked` : undefined}
              lines={[
                line("allocated", "Allocated", "--series-1"),
                line("used", "Computing", "--series-2", [7, 3]),
              ]}
              from={range.from} to={range.to} write={percent} most={1} marks={marks} height={plotHeight}
            />
            <Chart
              title="Waste"
              lines={[
                line("idle", "Held, idle", "--series-3", [2, 3]),
                line("fragmented", "Fragmented", "--series-4"),
                line("stranded", "Stranded", "--series-5", [7, 3]),
              ]}
              from={range.from} to={range.to} write={percent} most={0.05} height={plotHeight}
            />
            <Chart
              title="Pending pods"
              lines={[{ ...line("pods_pending", "Pending", "--series-4"), band: true }]}
              from={range.from} to={range.to} write={count} most={4} height={plotHeight}
            />
            <Chart
              title="Time to slice"
              note="median of the hour before"
              lines={[{ ...line("seconds_to_slice", "Median", "--series-5"), band: true }]}
              from={range.from} to={range.to} write={duration} steps={spans} most={30} height={plotHeight}
            />
          </div>
        );
      }}
    </Loaded>
  );
}

function Waiting(): ReactNode {
  const { name } = useCluster();
  const now = useNow();
  const waiting = useResource(`waiting|${name}|${Math.floor(now / 10_000)}`, (signal) =>
    api.workloads(name, { state: "pending", limit: 6 }, signal),
  );
  return (
    <section className="panel">
      <h2>
        <a href={href("workloads", { state: "pending" })}>Waiting</a>{" "}
        <span className="muted">{waiting.data ? count(waiting.data.total) : ""}</span>
      </h2>
      <Loaded resource={waiting} what="what waits">
        {(data) =>
          data.pods.length === 0 ? (
            <p className="muted">No pod waits for a GPU.</p>
          ) : (
            <ul className="lines">
              {data.pods.map((pod) => (
                <WaitingPod key={pod.uid} pod={pod} now={now} />
              ))}
            </ul>
          )
        }
      </Loaded>
    </section>
  );
}

function WaitingPod({ pod, now }: { pod: Pod; now: number }): ReactNode {
  const { reason, remedy } = splitRemedy(pod.why || pod.message);
  const wanted = Object.entries(pod.requests).filter(([resource]) => resource.includes("/"));
  return (
    <li>
      <div className="line-head">
        <a className="ellipsis" href={href("workloads", { pod: `${pod.namespace}/${pod.name}`, state: "pending" })}>
          {pod.namespace}/{pod.name}
        </a>
        <span className="tag">{wanted.map(([resource, amount]) => request(resource, amount)).join(", ")}</span>
        <span className="muted nowrap">{duration((now - pod.created) / 1000)}</span>
      </div>
      <div className="muted clamp" title={reason}>{remedy || reason}</div>
    </li>
  );
}

function Recent(): ReactNode {
  const { name } = useCluster();
  const now = useNow(10_000);
  const decisions = useResource(`recent|${name}`, (signal) => api.decisions(name, { limit: 7 }, signal));
  useEvent("decision", (data) => {
    const next = data as Decision;
    decisions.set((last) => ({ decisions: withDecision(last.decisions, next, 7) }));
  });
  return (
    <section className="panel">
      <h2>
        <a href={href("decisions")}>Decisions</a>
      </h2>
      <Loaded resource={decisions} what="decisions">
        {(data) =>
          data.decisions.length === 0 ? (
            <p className="muted">No decisions yet.</p>
          ) : (
            <ul className="lines">
              {byTime(data.decisions).map((decision) => (
                <li key={decision.id} className="line-head">
                  <span className="tag" data-type={decision.type}>{decision.type}</span>
                  <a className="ellipsis grow" href={href("decisions", { id: decision.id })}>
                    {decision.summary}
                  </a>
                  {decision.state === "failed" && <span className="bad-text nowrap">failed</span>}
                  <span className="muted nowrap">{ago(madeAt(decision), now)}</span>
                </li>
              ))}
            </ul>
          )
        }
      </Loaded>
    </section>
  );
}

function Models({ overview }: { overview: Overview }): ReactNode {
  return (
    <section className="panel">
      <h2>Models</h2>
      <table className="plain">
        <thead className="hidden">
          <tr>
            <th scope="col">Model</th>
            <th scope="col">GPUs</th>
            <th scope="col">Allocated</th>
          </tr>
        </thead>
        <tbody>
          {overview.models.map((model) => (
            <tr key={model.product}>
              <th scope="row">{shortProduct(model.product)}</th>
              <td className="number">{count(model.gpus)}</td>
              <td className="wide">
                <Meter label="Allocated" share={model.allocated} text={percent(model.allocated)} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

/** Nodes and GPUs that need attention. */
function Attention(): ReactNode {
  const { live } = useCluster();
  const gpus = useGpus(undefined, "");
  const now = useNow(10_000);
  const items = useMemo(() => {
    const found: { key: string; text: string; why: string; link: string }[] = [];
    for (const node of gpus.data?.nodes ?? []) {
      const link = href("map", { sel: `${node.node}/${node.gpus[0]?.index ?? 0}` });
      if (!node.ready) found.push({ key: node.node, text: node.node, why: `not ready; last report ${clock(node.fresh_at, live.now(), false)}`, link });
      for (const gpu of node.gpus) {
        if (gpu.health) {
          found.push({ key: gpu.gpu, text: `${node.node} GPU ${gpu.index}`, why: gpu.health, link: href("map", { sel: `${node.node}/${gpu.index}` }) });
        }
      }
    }
    return found;
  }, [gpus.data, live, now]);
  return (
    <section className="panel">
      <h2>Needs attention</h2>
      <Loaded resource={gpus} what="GPUs" rows={2}>
        {() =>
          items.length === 0 ? (
            <p className="muted">All GPUs are healthy, all nodes are ready.</p>
          ) : (
            <ul className="lines">
              {items.slice(0, 8).map((item) => (
                <li key={item.key}>
                  <div className="line-head">
                    <Icon name="alert" />
                    <a href={item.link}>{item.text}</a>
                  </div>
                  <div className="muted clamp">{item.why}</div>
                </li>
              ))}
              {items.length > 8 && <li className="muted">and {items.length - 8} more on the map</li>}
            </ul>
          )
        }
      </Loaded>
    </section>
  );
}
