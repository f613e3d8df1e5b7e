// Five answers: how the GPUs are used, what needs attention, who waits and why, what each team
// holds, what happened in the last hour.
import { useMemo, type ReactNode } from "react";
import { api } from "../api/client";
import type { Alert, Cost, Overview, Pod, Pool, Quota, Series, Stories, Story } from "../api/types";
import { partsOf } from "../lib/capacity";
import { centParts, cents, hours, labelOf, micros } from "../lib/costs";
import { loadPending, useBeat, useCluster, useEvent, useGpus, useHourCost, useNow, useOverview, useRange, useResource, useStories, type Resource } from "../lib/data";
import { ago, clock, count, counted, duration, percent } from "../lib/format";
import { href } from "../lib/route";
import { useSeries } from "../lib/series";
import { teamsCsv, waitsCsv } from "../lib/tables";
import { gigabytesOfGpu, idleCosts, inGpus, isUnmet, subjectOf, teamsOf, type Team } from "../lib/teams";
import { groupCauses, groupWaiting } from "../lib/waiting";
import { shortProduct } from "../map/cells";
import { MiniMap } from "../map/minimap";
import { Chart, type Line } from "../ui/chart";
import { PartsList } from "../ui/costparts";
import { Figure } from "../ui/figure";
import { Icon } from "../ui/icons";
import { Meter } from "../ui/panel";
import { CsvButton } from "../ui/save";
import { QuotaBar } from "../ui/quotabar";
import { staleAfter } from "../ui/shell";
import { Spark } from "../ui/spark";
import { Empty, Loaded } from "../ui/states";
import { StoryText } from "../ui/story";
import { stuckAfter, WaitRow } from "../ui/waitrow";
import { useWide } from "../lib/wide";

const hour = 3_600_000;

export default function OverviewPage(): ReactNode {
  const overview = useOverview();
  if (overview.data?.nodes === 0) {
    return (
      <Empty title="No node reports yet">
        <p>
          Nodes appear as soon as their agent sends its first report. Nodes that nos partitions carry the label{" "}
          <code>nos.nebuly.com/gpu-partitioning</code>.
        </p>
      </Empty>
    );
  }
  return <Answers overview={overview} />;
}

interface Sources {
  overview: Resource<Overview>;
  gpus: ReturnType<typeof useGpus>;
  pending: Resource<Pod[]>;
  quotas: Resource<{ quotas: Quota[] }>;
  stories: Resource<Stories>;
  /** Of the last hour; no data without prices. */
  costs: Resource<Cost>;
}

function Answers({ overview }: { overview: Resource<Overview> }): ReactNode {
  const { name } = useCluster();
  const beat = useBeat(10_000);
  const gpus = useGpus(undefined, "");
  const pending = useResource(`pending|${name}|${beat}`, (signal) => loadPending(name, signal));
  const quotas = useResource(`quotas|${name}`, (signal) => api.quotas(name, undefined, signal));
  useEvent("quotas", (data) => {
    const next = data as { quotas?: Quota[] };
    if (Array.isArray(next.quotas)) quotas.set(() => ({ quotas: next.quotas ?? [] }));
  });
  useEvent("reset", quotas.reload);
  const stories = useStories();
  const sources: Sources = { overview, gpus, pending, quotas, stories, costs: useHourCost() };
  return (
    <div className="overview">
      <Use {...sources} />
      <Attention {...sources} />
      <Waiting pending={pending} />
      <Teams {...sources} />
      <LastHour stories={stories} />
      <MapPanel gpus={gpus} />
    </div>
  );
}

/** A panel whose list scrolls if the page is lower than it is long. */
function Answer({ area, title, link, note, tool, children }: { area: string; title: string; link?: string; note?: ReactNode; tool?: ReactNode; children: ReactNode }): ReactNode {
  return (
    <section className="panel answer" data-area={area} aria-labelledby={`answer-${area}`}>
      <div className="answer-head">
        <h2 id={`answer-${area}`}>
          {link ? <a href={link}>{title}</a> : title} {note && <span className="muted">{note}</span>}
        </h2>
        {tool}
      </div>
      {children}
    </section>
  );
}

/** `short`: something below it takes the room that it leaves. */
const Rows = ({ label, short, children }: { label: string; short?: boolean; children: ReactNode }): ReactNode => (
  <div className={short ? "answer-rows short" : "answer-rows"} tabIndex={0} role="region" aria-label={label}>
    <ul className="lines">{children}</ul>
  </div>
);

/* How the GPUs are used. */

function Use({ overview, stories, costs }: Sources): ReactNode {
  return (
    <section className="panel answer" data-area="use" aria-labelledby="answer-use">
      <h2 id="answer-use" className="hidden">Use of GPUs</h2>
      <Loaded resource={overview} what="the use of the cluster" rows={2}>
        {(data) => <Capacity overview={data} costs={costs} />}
      </Loaded>
      <Trends stories={stories.data?.stories ?? []} />
    </section>
  );
}

/** Of the same hour yesterday; undefined while it loads, null without data. */
function useYesterday(): { allocated: number | null; used: number | null } | undefined {
  const { name } = useCluster();
  const now = useNow(600_000);
  const answer = useResource(`yesterday|${name}|${now}`, async (signal) => {
    const query = { subject: ["cluster"], from: now - 24 * hour - hour / 2, to: now - 24 * hour + hour / 2, points: 1 };
    const mean = async (metric: string): Promise<number | null> => {
      const [series] = (await api.series(name, { metric, ...query }, signal)).series;
      const known = (series?.mean ?? []).filter((each): each is number => each !== null);
      return known.length > 0 ? known.reduce((sum, each) => sum + each, 0) / known.length : null;
    };
    const [allocated, used] = await Promise.all([mean("allocated"), mean("used")]);
    return { allocated, used };
  });
  return answer.data;
}

function against(value: number | null, before: number | null | undefined): string {
  if (value === null || before === undefined) return "";
  return before === null ? "no data of yesterday" : `yesterday ${percent(before)}`;
}

/** The parts add up to it. */
function HourCost({ data }: { data: Cost }): ReactNode {
  const { total, currency } = data;
  const parts = centParts(total);
  return parts.length === 0 ? null : (
    <PartsList
      parts={parts} cost={micros(total.cost)} write={cents}
      title={<><a href={href("cost", { span: "24h" })}>Cost of the last hour</a> <span className="muted">{currency}</span></>}
    />
  );
}

function hoursText({ total }: Cost): string {
  return micros(total.unpriced_gpu_hours) === 0 ? `${hours(total.gpu_hours)} GPU hours` : `${hours(total.unpriced_gpu_hours)} of ${hours(total.gpu_hours)} GPU hours have no price`;
}

function Capacity({ overview, costs }: Pick<Sources, "costs"> & { overview: Overview }): ReactNode {
  const yesterday = useYesterday();
  const parts = partsOf(overview);
  const gpus = (share: number | null): number => Math.round((share ?? 0) * overview.gpus);
  const wasted = gpus(overview.idle);
  return (
    <>
      <div className="figures">
        <Figure
          name="Allocated" value={percent(overview.allocated)} more={against(overview.allocated, yesterday?.allocated)}
          note={`${count(gpus(overview.allocated))} of ${counted(overview.gpus, "GPU")}`}
        />
        <Figure
          name="Computing" value={overview.used === null ? "not measured" : percent(overview.used)}
          more={against(overview.used, yesterday?.used)} note={overview.used === null ? "" : `${counted(gpus(overview.used), "GPU")} of work`}
        />
        {overview.empty_gpus !== undefined && (
          <Figure
            name="Empty GPUs" value={count(overview.empty_gpus)} note={overview.empty_nodes ? `${counted(overview.empty_nodes, "whole node")} of ${count(overview.nodes)}` : `on ${counted(overview.nodes, "node")}`}
            more={overview.empty_gpus > 0 ? "free to give back" : ""} href={href("map", { by: "state" })}
          />
        )}
        <Figure
          name="Idle" value={overview.idle === null ? "not measured" : count(wasted)} tone={wasted > 0 ? "warn" : ""}
          note={overview.idle === null ? "" : "GPUs, below 5 % busy"} href={href("map", { by: "utilization" })}
        />
        <Figure
          name="Pending pods" value={count(overview.pods.pending ?? 0)} note={`${count(overview.pods.running ?? 0)} running`}
          href={href("workloads", { state: "pending" })}
        />
        <Figure name="Time to slice" value={duration(overview.seconds_to_slice)} note="median, last hour" />
        {costs.data && (
          <Figure
            name="Cost" value={cents(micros(costs.data.total.cost))} note={`${costs.data.currency} in the last hour`} more={hoursText(costs.data)}
            href={href("cost", { span: "24h" })}
          />
        )}
      </div>
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
      {costs.data && <Loaded resource={costs} what="costs">{(data) => <HourCost data={data} />}</Loaded>}
      {overview.models.length > 1 && (
        <ul className="models" aria-label="Allocated by model">
          {overview.models.slice(0, 6).map((model) => (
            <li key={model.product}>
              <span className="ellipsis">{shortProduct(model.product)}</span> <span className="muted nowrap">{counted(model.gpus, "GPU")}</span>
              <Meter label="Allocated" share={model.allocated} text={percent(model.allocated)} />
            </li>
          ))}
        </ul>
      )}
    </>
  );
}

const metrics = ["allocated", "used", "idle", "fragmented", "stranded", "seconds_to_slice"] as const;
/** Round steps of an axis in seconds. */
const spans = [1, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200, 21_600, 86_400];

function Trends({ stories }: { stories: Story[] }): ReactNode {
  const range = useRange();
  const series = useSeries(metrics, ["cluster"], range);
  const tall = useWide(2000);
  const marks = useMemo(() => stories.map((each) => ({ at: each.at, failed: each.outcome === "failed" })), [stories]);
  const shape = { from: range.from, to: range.to, height: tall ? 210 : 120, brief: true };
  return (
    <Loaded resource={series} what="trends" rows={2}>
      {(data) => {
        const line = (metric: string, label: string, colour: string, dash?: number[]): Line => ({ label, colour, dash, series: data.of(metric) });
        return (
          <div className="charts">
            <Chart
              {...shape} title="Use" write={percent} most={1} marks={marks} note="marks: decisions of the last hour"
              lines={[line("allocated", "Allocated", "--series-1"), line("used", "Computing", "--series-2", [7, 3])]}
            />
            <Chart
              {...shape} title="Waste" write={percent} most={0.05}
              lines={[
                line("idle", "Allocated, idle", "--series-3", [2, 3]),
                line("fragmented", "Locked", "--series-4"),
                line("stranded", "Stranded", "--series-5", [7, 3]),
              ]}
            />
            <Chart
              {...shape} title="Time to slice" note="median of the hour before" write={duration} steps={spans} most={30}
              lines={[{ ...line("seconds_to_slice", "Median", "--series-5"), band: true }]}
            />
          </div>
        );
      }}
    </Loaded>
  );
}

/* What needs attention. */

interface Item {
  key: string;
  text: string;
  why: string;
  /** Empty: there is none. */
  link: string;
  bad?: boolean;
  /** The link leaves the dashboard. */
  outside?: boolean;
}

function Attention({ gpus, pending, quotas, stories }: Sources): ReactNode {
  const { name, live } = useCluster();
  const now = useNow(10_000);
  const pools = useResource(`pools|${name}`, (signal) => api.pools(name, undefined, signal));
  useEvent("pools", (data) => {
    const next = data as { pools?: Pool[] };
    if (Array.isArray(next.pools)) pools.set(() => ({ pools: next.pools ?? [] }));
  });
  const teams = useMemo(
    () => teamsOf([], quotas.data?.quotas ?? [], pending.data ?? []),
    [quotas.data, pending.data],
  );
  const beat = useBeat(30_000);
  const alerts = useResource(`alerts|${name}|${beat}`, (signal) => api.alerts(name, signal));
  const items = [
    ...firing(alerts.data?.alerts ?? [], now),
    ...brokenThings(gpus.data?.nodes ?? [], live.now(), now, staleAfter * 3 * Math.max(1, live.speed())),
    ...unmetQuotas(teams),
    ...stuckPods(pending.data ?? [], now),
    ...poolTroubles(pools.data?.pools ?? []),
    ...failures(stories.data?.stories ?? [], now),
  ];
  const sources = [gpus, pending, quotas];
  const failed = sources.find((each) => each.error && each.data === undefined);
  return (
    <Answer area="attention" title="Needs attention" note={items.length > 0 ? count(items.length) : ""}>
      {failed?.error && <p className="notice" role="alert">Not all of it is known: {failed.error.message}</p>}
      {items.length === 0 ? (
        <p className={failed ? "muted" : "good-text"}>
          {sources.some((each) => each.loading && each.data === undefined) ? "Looking…" : failed ? "Nothing in what is known." : "All GPUs are healthy, all nodes report, no pod waits for long, guarantees are met."}
        </p>
      ) : (
        <Rows label="Needs attention">
          {items.slice(0, 60).map((item) => (
            <li key={item.key}>
              <div className="line-head">
                <span className={item.bad ? "bad-text" : "warn-text"}><Icon name="alert" /></span>
                {item.link ? <a className="ellipsis" href={item.link} {...(item.outside ? { target: "_blank", rel: "noreferrer" } : {})}>{item.text}</a> : <span className="ellipsis">{item.text}</span>}
              </div>
              <div className="muted clamp" title={item.why}>{item.why}</div>
            </li>
          ))}
        </Rows>
      )}
    </Answer>
  );
}

/** Alerts of an Alertmanager. The server lets only addresses of http and https through. */
const firing = (alerts: readonly Alert[], now: number): Item[] =>
  alerts.map((alert) => ({
    key: `alert|${Object.entries(alert.labels).flat().join("|")}`, bad: alert.severity === "critical", outside: true,
    text: alert.namespace ? `${alert.name} in ${alert.namespace}` : alert.name,
    why: [alert.summary || alert.description, alert.since > 0 ? `fires since ${ago(alert.since, now)}` : ""].filter(Boolean).join("; "),
    link: /^https?:\/\//.test(alert.url) ? alert.url : "",
  }));

function brokenThings(nodes: NonNullable<Sources["gpus"]["data"]>["nodes"], time: number, now: number, silence: number): Item[] {
  const found: Item[] = [];
  for (const node of nodes) {
    const link = href("map", { sel: `${node.node}/${node.gpus[0]?.index ?? 0}` });
    if (!node.ready) found.push({ key: node.node, bad: true, text: `Node ${node.node} is not ready`, why: `last report ${clock(node.fresh_at, time, false)}`, link });
    else if (now - node.fresh_at > silence) found.push({ key: node.node, text: `Node ${node.node} is silent`, why: `its agent reported last ${ago(node.fresh_at, now)}`, link });
    for (const gpu of node.gpus) {
      if (!gpu.health) continue;
      found.push({ key: gpu.gpu, bad: true, text: `GPU ${gpu.index} of ${node.node} is unhealthy`, why: gpu.health, link: href("map", { sel: `${node.node}/${gpu.index}` }) });
    }
  }
  return found;
}

const unmetQuotas = (teams: readonly Team[]): Item[] =>
  teams.filter(isUnmet).map((team) => ({
    key: `quota/${team.name}`, text: `${team.name} is below its guarantee, ${counted(team.able, "pod")} ${team.able === 1 ? "waits" : "wait"}`,
    why: `uses ${percent((team.amounts?.used ?? 0) / Math.max(1, team.amounts?.guaranteed ?? 1))} of what is guaranteed`, link: href("quotas"),
  }));

const stuckShown = 6;

/** By cause and size: the list beside has the jobs. */
function stuckPods(pods: readonly Pod[], now: number): Item[] {
  const groups = groupCauses(pods.filter((each) => now - each.created > stuckAfter));
  const items = groups.slice(0, stuckShown).map((group) => ({
    key: `stuck/${group.cause.key}/${group.wanted}`, link: href("workloads", { state: "pending", group: "reason" }),
    text: `${counted(group.pods.length, "pod")} ${group.pods.length === 1 ? "waits" : "wait"} for ${group.wanted}, up to ${duration((now - group.since) / 1000)}`,
    why: `${group.cause.title}${group.cause.reason ? `: ${group.cause.reason}` : ""}`,
  }));
  const rest = groups.slice(stuckShown).reduce((sum, each) => sum + each.pods.length, 0);
  if (rest > 0) {
    items.push({ key: "stuck", text: `${counted(rest, "more pod")} wait for over 10 min`, why: "", link: href("workloads", { state: "pending", group: "reason" }) });
  }
  return items;
}

const poolTroubles = (pools: readonly Pool[]): Item[] =>
  pools
    .filter((pool) => ["failing", "invalid", "closed"].includes(pool.state ?? ""))
    .map((pool) => ({ key: `pool/${pool.id}`, text: `Pool ${pool.name} is ${pool.state}`, why: pool.why ?? "", link: href("pools"), bad: pool.state !== "closed" }));

function failures(stories: readonly Story[], now: number): Item[] {
  const failed = stories.filter((each) => each.outcome === "failed" && now - each.at < hour);
  const last = failed[0];
  if (!last) return [];
  const many = failed.reduce((sum, each) => sum + decisionsOf(each), 0);
  return [{ key: "failed", text: `${counted(many, "decision")} of the last hour failed`, why: last.sentence, link: href("decisions", { id: last.id }) }];
}

/* Who waits, and why. */

/** A list as short as that leaves room for a chart. */
const groupsBesideChart = 6;

function Waiting({ pending }: { pending: Resource<Pod[]> }): ReactNode {
  const now = useNow();
  const groups = useMemo(() => groupWaiting(pending.data ?? []), [pending.data]);
  const range = useRange();
  const charted = pending.data !== undefined && groups.length <= groupsBesideChart;
  const series = useSeries(charted ? ["pods_pending"] : [], ["cluster"], range);
  return (
    <Answer
      area="waiting" title="Waiting, longest first" link={href("workloads", { state: "pending" })}
      tool={groups.length > 0 && <CsvButton small what="waiting pods" make={() => waitsCsv(groups)} />}
      note={pending.data ? `${counted(pending.data.length, "pod")}${groups.length > 0 ? ` in ${counted(groups.length, "group")}` : ""}` : ""}
    >
      <Loaded resource={pending} what="what waits">
        {() =>
          groups.length === 0 ? (
            <p className="muted">No pod waits for a GPU.</p>
          ) : (
            <Rows label="Waiting pods by job and cause" short={charted}>
              {groups.slice(0, 100).map((group) => (
                <WaitRow key={group.key} group={group} now={now} />
              ))}
              {groups.length > 100 && <li className="muted">and {groups.length - 100} more groups</li>}
            </Rows>
          )
        }
      </Loaded>
      {charted && series.data && (
        <Chart
          title="Pending pods" from={range.from} to={range.to} height={130} brief fill write={count} most={4}
          lines={[{ label: "Pending", colour: "--series-4", series: series.data.of("pods_pending"), band: true }]}
        />
      )}
    </Answer>
  );
}

/* Teams. */

function Teams({ overview, gpus, quotas, pending, costs }: Sources): ReactNode {
  const { live } = useCluster();
  const range = useRange();
  const wide = useWide(mapFrom);
  const gigabytes = gigabytesOfGpu(overview.data);
  const teams = useMemo(
    () => teamsOf(gpus.data?.nodes ?? [], quotas.data?.quotas ?? [], pending.data ?? []),
    [gpus.data, quotas.data, pending.data],
  );
  const wasted = useMemo(() => costs.data && idleCosts(teams, costs.data), [teams, costs.data]);
  const currency = costs.data?.currency ?? "";
  const subjects = useMemo(
    () => teams.filter((each) => each.quota).slice(0, 24).map((each) => subjectOf(each.quota!, each.resource)),
    [teams],
  );
  // The order of teams changes with their use; the request does not.
  const series = useSeries(["used"], [...subjects].sort(), range);
  const drawn = teams.filter((each) => each.quota && inGpus(each.resource, 1, gigabytes) !== null).slice(0, teamColours.length);
  const charted = teams.length <= 14 && drawn.length > 0 && series.data !== undefined;
  const mapped = !wide && !charted && teams.length <= 6;
  return (
    <Answer
      area="teams" title="Teams" link={href("quotas")} note={teams.length === 0 ? "" : wasted ? "use, quota, waiting pods, and cost of the last hour" : "use, quota and waiting pods"}
      tool={teams.length > 0 && <CsvButton small what="teams" make={() => teamsCsv(teams, wasted && { wasted, currency })} />}
    >
      <Loaded resource={gpus} what="what teams hold">
        {() =>
          teams.length === 0 ? (
            <p className="muted">No pod holds a GPU and there is no quota.</p>
          ) : (
            <div className={charted || mapped ? "answer-rows short" : "answer-rows"} tabIndex={0} role="region" aria-label="Teams">
              <table className="plain teams">
                <thead>
                  <tr>
                    <th scope="col">Team</th>
                    <th scope="col" className="number">GPUs</th>
                    <th scope="col">Quota</th>
                    <th scope="col">Trend</th>
                    <th scope="col" className="number">Idle</th>
                    {wasted && <th scope="col" className="number">{labelOf("idle")}<br />{currency}</th>}
                    <th scope="col" className="number">Waiting</th>
                  </tr>
                </thead>
                <tbody>
                  {teams.slice(0, 100).map((team) => (
                    <TeamRow
                      key={team.name} team={team} gigabytes={gigabytes} wasted={wasted && cents(wasted(team))}
                      trend={<TeamTrend team={team} of={series.data?.of} from={range.from} to={range.to} />}
                    />
                  ))}
                </tbody>
              </table>
            </div>
          )
        }
      </Loaded>
      {mapped && gpus.data && (
        <div className="filler">
          <h3><a href={href("map")}>GPU map</a> by state</h3>
          <MiniMap nodes={gpus.data.nodes} staleBefore={live.now() - staleAfter * Math.max(1, live.speed())} />
        </div>
      )}
      {charted && (
        <Chart
          title="Use by quota, in GPUs" from={range.from} to={range.to} height={130} brief fill write={(value) => count(value ?? null)}
          lines={drawn.map((team, place) => ({
            label: team.name, colour: teamColours[place]!, dash: teamDashes[place],
            series: scaled(series.data?.of("used", subjectOf(team.quota!, team.resource)), inGpus(team.resource, 1, gigabytes) ?? 1),
          }))}
        />
      )}
    </Answer>
  );
}

const teamColours = ["--series-1", "--series-4", "--series-2", "--series-5", "--series-3"];
const teamDashes = [undefined, [7, 3], [2, 3], [7, 3, 2, 3], [4, 2]];

const scaled = (series: Series | undefined, factor: number): Series | undefined => {
  const times = (values: (number | null)[]): (number | null)[] => values.map((each) => (each === null ? null : each * factor));
  return series && { ...series, mean: times(series.mean), min: times(series.min), max: times(series.max) };
};

type SeriesOf = NonNullable<ReturnType<typeof useSeries>["data"]>["of"];

function TeamTrend({ team, of, from, to }: { team: Team; of: SeriesOf | undefined; from: number; to: number }): ReactNode {
  if (!team.quota || !of) return null;
  const series = of("used", subjectOf(team.quota, team.resource));
  const most = Math.max(team.amounts?.guaranteed ?? 0, ...(series?.mean ?? []).map((each) => each ?? 0));
  return <Spark series={series} from={from} to={to} most={most} />;
}

/** `wasted`: the cost of what it held idle; undefined without prices. */
function TeamRow({ team, gigabytes, wasted, trend }: { team: Team; gigabytes: number; wasted: string | undefined; trend: ReactNode }): ReactNode {
  const { amounts, resource } = team;
  const promised = amounts && inGpus(resource, amounts.guaranteed, gigabytes);
  const small = (value: number): string => (value < 9.95 ? value.toFixed(1).replace(/\.0$/, "") : count(Math.round(value)));
  return (
    <tr>
      <th scope="row" className="ellipsis">
        <a href={team.quota ? href("workloads", { ns: team.quota.namespaces[0] ?? team.quota.namespace }) : href("workloads", { ns: team.name })}>{team.name}</a>
      </th>
      <td className="number strong">{small(team.gpus)}</td>
      <td className="wide">
        {amounts ? (
          <span className="team-quota">
            <QuotaBar amounts={amounts} most={Math.max(1, amounts.used, amounts.guaranteed, amounts.min, amounts.max ?? 0)} />
            <span className="muted small nowrap">
              {promised ? `of ${small(promised)}` : percent(amounts.guaranteed > 0 ? amounts.used / amounts.guaranteed : 0)}
              {amounts.borrowed > 0 ? ", borrows" : amounts.lent > 0 ? ", lends" : ""}
            </span>
          </span>
        ) : (
          <span className="muted">no quota</span>
        )}
      </td>
      <td>{trend}</td>
      <td className="number">{team.idle >= 0.05 ? <span className="warn-text">{small(team.idle)}</span> : "0"}</td>
      {wasted !== undefined && <td className="number" data-label={labelOf("idle")}>{wasted}</td>}
      <td className="number">{team.waiting > 0 ? <span className={isUnmet(team) ? "bad-text" : ""}>{count(team.waiting)}</span> : "0"}</td>
    </tr>
  );
}

/* The last hour. */

const decisionsOf = (story: Story): number => story.decisions.length + (story.more_decisions ?? 0);

function LastHour({ stories }: { stories: Resource<Stories> }): ReactNode {
  const now = useNow(10_000);
  const shown = useMemo(() => (stories.data?.stories ?? []).filter((each) => each.at > now - hour), [stories.data, now]);
  return (
    <Answer area="stories" title="The last hour" link={href("decisions")} note={shown.length > 0 ? counted(shown.reduce((sum, each) => sum + decisionsOf(each), 0), "decision") : ""}>
      <Loaded resource={stories} what="decisions">
        {() =>
          shown.length === 0 ? (
            <p className="muted">No GPU was repartitioned, no pod was evicted, no pool was scaled.</p>
          ) : (
            <Rows label="Decisions of the last hour">
              {shown.slice(0, 200).map((story) => (
                <StoryRow key={story.id} story={story} now={now} />
              ))}
            </Rows>
          )
        }
      </Loaded>
    </Answer>
  );
}

function StoryRow({ story, now }: { story: Story; now: number }): ReactNode {
  return (
    <li className="story">
      <time className="muted nowrap" dateTime={new Date(story.at).toISOString()} title={ago(story.at, now)}>{clock(story.at, now, false)}</time>
      <span className="tag" data-type={story.type}>{story.type}</span>
      <a href={href("decisions", { id: story.id })} className="story-text" title={story.reason}>
        <StoryText story={story} />
      </a>
      {story.outcome === "failed" && <span className="bad-text nowrap">failed</span>}
    </li>
  );
}

/* The map, where there is room. */

/** Width of the window from which the map has a panel of its own. */
const mapFrom = 2000;

function MapPanel({ gpus }: { gpus: Sources["gpus"] }): ReactNode {
  const { live } = useCluster();
  const wide = useWide(mapFrom);
  if (!wide) return null;
  return (
    <Answer area="map" title="GPU map" link={href("map")} note="by state">
      {gpus.data && <MiniMap nodes={gpus.data.nodes} staleBefore={live.now() - staleAfter * Math.max(1, live.speed())} />}
    </Answer>
  );
}
