// Jobs and pods: running ones with their nodes, pending ones with the reason.
import { useEffect, useMemo, useRef, useState, type ReactNode } from "react";
import { Button } from "react-aria-components";
import { api } from "../api/client";
import { podStates, type Jobs, type Pod, type Workloads } from "../api/types";
import { useAt, useCluster, useEvent, useNow, useOverview, useResource, type Cluster, type Resource } from "../lib/data";
import { clock, count, counted, duration, memory, percent } from "../lib/format";
import { href, setParams, useRoute } from "../lib/route";
import { groupPods, isWanted, memoryOf, mergePods, splitRemedy, type Group } from "../lib/pods";
import { busyOf, nextOrder, orderOf, sinceOf, sortPods, type Column, type Order } from "../lib/sort";
import { podsCsv } from "../lib/tables";
import { causeOf, groupCauses, wantedOf } from "../lib/waiting";
import { PodPanel } from "../panels";
import { Search, Segments } from "../ui/controls";
import { Meter } from "../ui/panel";
import { CsvButton } from "../ui/save";
import { StateMark } from "../ui/podstate";
import { Empty, Loaded } from "../ui/states";
import { useThrottled } from "../lib/throttle";
import { QueueTable } from "./queues";

const pageSize = 200;
/** An order of our own and groups by reason need all pods, up to this many. */
const [allAtOnce, mostPages] = [1000, 10];
/** Pages of a file: a hundred thousand pods. */
const mostSaved = 100;

interface Filter {
  namespace: string;
  state: string;
  job: string;
  q: string;
  at: number | undefined;
}

/** Loads all pages and joins them. */
async function load({ name, live }: Cluster, filter: Filter, pages: number, limit: number, signal: AbortSignal): Promise<Workloads> {
  let all: Workloads | undefined;
  for (let page = 0; page < pages && all?.next !== null; page++) {
    const answer = await api.workloads(name, { ...filter, limit, after: all?.next ?? undefined }, signal);
    all = all ? { ...answer, pods: [...all.pods, ...answer.pods] } : answer;
  }
  if (!all) throw new Error("no page was asked for");
  if (filter.at === undefined) live.sawDataOf(all.at);
  return all;
}

export default function WorkloadsPage(): ReactNode {
  const { params } = useRoute();
  const cluster = useCluster();
  const at = useAt();
  const q = useThrottled(params.q ?? "", 250);
  const byReason = params.group === "reason";
  const filter: Filter = { namespace: params.ns ?? "", state: byReason ? "pending" : (params.state ?? ""), job: params.job ?? "", q, at };
  const pages = Math.min(50, Math.max(1, Number(params.pages) || 1));
  // Pods that wait are shown by the longest wait, which is not the server's order.
  const order = orderOf(params.sort) ?? (filter.state === "pending" ? orderOf("-since") : undefined);
  const whole = order !== undefined || byReason;
  const workloads = useResource(
    ["pods", cluster.name, filter.namespace, filter.state, filter.job, q, at ?? "", whole || pages].join("|"),
    (signal) => load(cluster, filter, whole ? mostPages : pages, whole ? allAtOnce : pageSize, signal),
  );
  const jobs = useResource(params.group === "job" ? `jobs|${cluster.name}|${filter.namespace}|${at ?? ""}` : "", (signal) =>
    api.jobs(cluster.name, filter.namespace, at, signal),
  );
  useLiveList(workloads, jobs, at);
  const open = params.pod ? params.pod.split("/", 2) : undefined;
  return (
    <div className="with-side">
      <div className="main-column">
        <Filters total={workloads.data?.total} csv={() => everything(cluster, filter, order)} />
        <QueueTable queues={jobs.data?.queues ?? []} />
        <Loaded resource={workloads} what="workloads" rows={10}>
          {(data) => <List data={data} jobs={jobs.data} filter={filter} pages={pages} whole={whole} busy={workloads.loading} />}
        </Loaded>
      </div>
      {open && (
        <PodPanel key={params.pod} namespace={open[0] ?? ""} name={open[1] ?? ""} onClose={() => setParams({ pod: "" })} />
      )}
    </div>
  );
}

/** Values change at once; the list itself is reloaded, at most every three seconds. */
const askEvery = 10_000; // jobs without pods send no events

function useLiveList(workloads: Resource<Workloads>, jobs: Resource<Jobs>, at: number | undefined): void {
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  useEvent("workloads", (data) => {
    const { changed = [], removed = [] } = data as { changed?: Pod[]; removed?: string[] };
    if (at !== undefined || !workloads.data) return;
    const { pods, other } = mergePods(workloads.data.pods, changed, removed);
    workloads.set((last) => ({ ...last, pods }));
    if (!other || timer.current) return;
    timer.current = setTimeout(() => {
      timer.current = undefined;
      workloads.reload();
      if (jobs.data) jobs.reload();
    }, 3000);
  });
  useEvent("reset", () => {
    if (at === undefined) workloads.reload();
  });
  const tick = useNow(askEvery);
  const { data, reload } = jobs;
  const asks = data !== undefined && at === undefined;
  useEffect(() => {
    if (asks) reload();
  }, [asks, reload, tick]);
}

/** All pods that the filters accept, in the order of the page. */
async function everything(cluster: Cluster, filter: Filter, order: Order | undefined): Promise<string> {
  const { pods } = await load(cluster, filter, mostSaved, allAtOnce, new AbortController().signal);
  return podsCsv(sortPods(pods, order, filter.at ?? cluster.live.now()));
}

function Filters({ total, csv }: { total: number | undefined; csv: () => Promise<string> }): ReactNode {
  const { params } = useRoute();
  const counts = useOverview().data?.pods ?? {};
  const options = [
    { id: "", label: "All" },
    ...podStates
      .filter((state) => (counts[state] ?? 0) > 0 || state === params.state || state === "pending" || state === "running")
      .map((state) => ({ id: state, label: state, note: counts[state] === undefined ? undefined : count(counts[state]) })),
  ];
  return (
    <div className="toolbar">
      <Search label="Search workloads" placeholder="Name, job, node, resource" value={params.q ?? ""} onChange={(q) => setParams({ q, pages: "" })} />
      <Segments label="State" value={params.group === "reason" ? "pending" : (params.state ?? "")} options={options} onChange={(state) => setParams({ state, pages: "", ...(params.group === "reason" && state !== "pending" ? { group: "" } : {}) })} />
      <Segments
        label="Group by" value={params.group ?? ""}
        onChange={(group) => setParams(group === "reason" ? { group, state: "pending", pages: "" } : { group, pages: "" })}
        options={[{ id: "", label: "Pods" }, { id: "job", label: "Jobs" }, { id: "reason", label: "Reasons" }]}
      />
      {params.ns && (
        <button type="button" className="chip" onClick={() => setParams({ ns: "" })}>
          namespace {params.ns} <span aria-label="remove">×</span>
        </button>
      )}
      {params.job && (
        <button type="button" className="chip" onClick={() => setParams({ job: "" })}>
          {params.job} <span aria-label="remove">×</span>
        </button>
      )}
      <span className="muted nowrap" role="status">{total === undefined ? "" : counted(total, "pod")}</span>
      {(total ?? 0) > 0 && <CsvButton what="pods" make={csv} />}
    </div>
  );
}

interface ListProps {
  data: Workloads;
  jobs: Jobs | undefined;
  filter: Filter;
  pages: number;
  /** All pods are loaded, and some of them shown. */
  whole: boolean;
  busy: boolean;
}

/** Pods of one group that are shown at first. */
const groupShows = 5;

function List({ data, jobs, filter, pages, whole, busy }: ListProps): ReactNode {
  const { params } = useRoute();
  const now = useNow();
  const minute = Math.floor(now / 60_000) * 60_000; // running times advance by minutes
  const { state, job, q } = filter;
  const grouping = params.group === "job" || params.group === "reason" ? params.group : "";
  const pods = useMemo(
    () => sortPods(data.pods, orderOf(params.sort) ?? (state === "pending" ? orderOf("-since") : undefined), minute),
    [data.pods, params.sort, state, minute],
  );
  const limit = whole && !grouping ? pages * pageSize : pods.length;
  const groups = useMemo(
    () =>
      grouping === "reason"
        ? reasonGroups(pods)
        : groupPods(pods.slice(0, limit), grouping === "job", jobs?.jobs, minute, (each) => isWanted(each, { state, job, q })),
    [pods, limit, jobs, grouping, minute, state, job, q],
  );
  if (data.pods.length === 0 && !groups.some((group) => group.state)) {
    const filtered = params.q || params.state || params.ns || params.job;
    return (
      <Empty title={filtered ? "No workload matches" : "No workload asks for a GPU"}>
        {filtered ? <a href={href("workloads", { ns: "", job: "" })}>Show all workloads</a> : "Pods that request GPUs or slices of them appear here."}
      </Empty>
    );
  }
  const left = whole && !grouping ? pods.length - limit : data.next === null ? 0 : data.total - data.pods.length;
  return (
    <>
      <div className="table-scroll" tabIndex={0} role="region" aria-label="Workloads">
        <table className="table workloads">
          <caption className="hidden">Pods that ask for GPUs{whole ? "" : ", the waiting ones first"}</caption>
          <thead>
            <tr>
              <Header column="state">State</Header>
              <Header column="pod">Pod</Header>
              <Header column="asks">Asks for</Header>
              <Header column="where">Where, or why it waits</Header>
              <Header column="busy" className="wide">Busy</Header>
              <Header column="memory" className="number">Memory</Header>
              <Header column="since" className="number">Since</Header>
            </tr>
          </thead>
          {groups.map((group) => (
            <Rows key={group.key} group={group} now={now} folds={grouping !== "" && groups.length > 1} reasons={grouping !== "reason"} />
          ))}
        </table>
      </div>
      {left > 0 && (
        <Button className="button more" isDisabled={busy} onPress={() => setParams({ pages: String(pages + 1) })}>
          Show {count(Math.min(pageSize, left))} more ({count(left)} left)
        </Button>
      )}
      {whole && data.next !== null && (
        <p className="muted">Sorted are the first {count(data.pods.length)} of {count(data.total)} pods; a search or a state narrows them.</p>
      )}
    </>
  );
}

/** A heading that sorts: once, the other way, then as the server has it. */
function Header({ column, className, children }: { column: Column; className?: string; children: string }): ReactNode {
  const { params } = useRoute();
  const order = orderOf(params.sort);
  const own = order?.column === column;
  return (
    <th scope="col" className={className} aria-sort={own ? (order.down ? "descending" : "ascending") : undefined}>
      <button type="button" className="sort" onClick={() => setParams({ sort: nextOrder(order, column), pages: "" })}>
        {children}
        <span aria-hidden="true">{own ? (order.down ? " ↓" : " ↑") : ""}</span>
      </button>
    </th>
  );
}

/** One line for each cause and size, the longest wait first. */
function reasonGroups(pods: Pod[]): Group[] {
  return groupCauses(pods).map(({ cause, wanted, pods: members }) => ({
    key: `${cause.key}|${wanted}`, kind: "", title: `${cause.title}: ${counted(members.length, "pod")} for ${wanted}`, summary: "", pods: members,
    why: [cause.reason, cause.remedy && `→ ${cause.remedy}`].filter(Boolean).join(" "),
  }));
}

/** A group and its pods, the first ones if it is long. `reasons`: each pod has its own. */
function Rows({ group, now, folds, reasons }: { group: Group; now: number; folds: boolean; reasons: boolean }): ReactNode {
  const { params } = useRoute();
  const [open, setOpen] = useState(false);
  const long = folds && group.pods.length > groupShows + 1;
  const shown = long && !open ? group.pods.slice(0, groupShows) : group.pods;
  return (
    <tbody>
      {group.title && (
        <tr className="group">
          <th scope="rowgroup" colSpan={7}>
            <span className="muted">{group.kind}</span>{" "}
            {group.only ? <a href={href("workloads", { group: "job", ...group.only })}>{group.title}</a> : group.title}{" "}
            {group.state && <span className="tag">{group.state}</span>} <span className="muted">{group.summary}</span>
            {group.why && <span className="clamp small" title={group.why}>{group.why}</span>}
          </th>
        </tr>
      )}
      {shown.map((pod) => (
        <Row key={pod.uid} pod={pod} now={now} selected={params.pod === `${pod.namespace}/${pod.name}`} reasons={reasons} />
      ))}
      {long && (
        <tr className="group-more">
          <td colSpan={7}>
            <button type="button" className="link" aria-expanded={open} onClick={() => setOpen(!open)}>
              {open ? "Show less" : `Show all ${count(group.pods.length)} pods`}
            </button>
          </td>
        </tr>
      )}
    </tbody>
  );
}

function Row({ pod, now, selected, reasons }: { pod: Pod; now: number; selected: boolean; reasons: boolean }): ReactNode {
  const full = `${pod.namespace}/${pod.name}`;
  return (
    <tr aria-selected={selected}>
      <td data-label="State"><StateMark state={pod.state} /></td>
      <th scope="row" data-label="Pod">
        <button type="button" className="link" onClick={() => setParams({ pod: full }, "push")}>
          <span className="muted">{pod.namespace}/</span>{pod.name}
        </button>
        {pod.capacity === "over-quota" && <span className="tag" title="Runs on what its quota borrows: first to be evicted when the lender needs it">borrowed</span>}
        {pod.priority > 0 && <span className="tag">priority {pod.priority}</span>}
      </th>
      <td data-label="Asks for">{wantedOf(pod)}</td>
      {pod.slices.length === 0 ? (
        <td className="where" colSpan={3} data-label={pod.state === "pending" ? "Why" : "Note"}>{reasons && <Reason pod={pod} />}</td>
      ) : (
        <>
          <td className="where" data-label="Where"><Where pod={pod} /></td>
          <td className="wide" data-label="Busy"><Busy pod={pod} /></td>
          <td className="number" data-label="Memory">{memory(memoryOf(pod))}</td>
        </>
      )}
      <td className="number since" data-label="Since">
        {since(pod, now)}
        {pod.state === "pending" && <span className="muted" title={pod.estimate_by}>{expected(pod, now)}</span>}
      </td>
    </tr>
  );
}

const since = (pod: Pod, now: number): string => duration((now - sinceOf(pod)) / 1000);

function Where({ pod }: { pod: Pod }): ReactNode {
  return pod.slices.map((slice) => (
    <a
      key={`${slice.node}/${slice.gpu}/${slice.start}`} className="nowrap"
      href={href("map", { sel: `${slice.node}/${slice.gpu}`, pod: `${pod.namespace}/${pod.name}` })}
    >
      {slice.node} · GPU {slice.gpu}
      {slice.profile ? ` · slot ${slice.start}` : ""}
    </a>
  ));
}

function Reason({ pod }: { pod: Pod }): ReactNode {
  if (pod.state !== "pending") return <span className="muted">{pod.message || pod.node || pod.reason}</span>;
  const { reason, remedy } = splitRemedy(pod.why || pod.message);
  return (
    <div className="waits">
      <span className="clamp" title={reason}>{reason || causeOf(pod).title}</span>
      {remedy && <span className="clamp remedy-text" title={remedy}>→ {remedy}</span>}
    </div>
  );
}

function expected(pod: Pod, now: number): string {
  if (pod.estimate === null || causeOf(pod).kind === "gated") return "start unknown";
  return pod.estimate <= now ? "starts any moment" : `start ~${clock(pod.estimate, now, false)}`;
}

function Busy({ pod }: { pod: Pod }): ReactNode {
  const mean = busyOf(pod);
  if (mean === null) return <span className="muted" title="The GPU does not report how busy its slices are.">not measured</span>;
  return <Meter label="Utilisation" share={mean} text={percent(mean)} tone={mean < 0.05 ? "idle" : "busy"} />;
}
