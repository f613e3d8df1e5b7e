// Decisions: changes, cost, served pods, and the effect on efficiency.
import { useMemo, type ReactNode } from "react";
import { Button } from "react-aria-components";
import { api } from "../api/client";
import type { Decision, PodName } from "../api/types";
import { useCluster, useEvent, useNow, useRange, useResource } from "../lib/data";
import { ago, clock, count, counted, milliseconds, percent } from "../lib/format";
import { byTime, changesOf, costOf, difference, doneAt, madeAt, switchOf, withDecision, type Change } from "../lib/layouts";
import { href, setParams, useRoute } from "../lib/route";
import { useSeries } from "../lib/series";
import { decisionsCsv } from "../lib/tables";
import type { TimeRange } from "../lib/range";
import { Chart } from "../ui/chart";
import { CsvButton } from "../ui/save";
import { Segments } from "../ui/controls";
import { Icon } from "../ui/icons";
import { Empty, Loaded } from "../ui/states";
import { StoryText } from "../ui/story";
import { Strip } from "../ui/strip";

const atOnce = 100;
const most = 1000; // limit of one request
const types = ["plan", "preemption", "reclaim", "move", "scale"] as const;

export default function DecisionsPage(): ReactNode {
  const { name } = useCluster();
  const range = useRange();
  const query = { from: Math.round(range.from), to: Math.round(range.to), limit: most };
  const decisions = useResource(`decisions|${name}|${range.from}|${range.to}`, (signal) =>
    api.decisions(name, query, signal),
  );
  useEvent("decision", (data) => {
    const next = data as Decision;
    if (!range.moving) return;
    decisions.set((last) => ({ decisions: withDecision(last.decisions, next, most) }));
  });
  return (
    <Loaded resource={decisions} what="decisions" rows={8}>
      {(data) => (
        <>
          <Efficiency range={range} decisions={data.decisions} />
          <List all={data.decisions} />
        </>
      )}
    </Loaded>
  );
}

function Efficiency({ range, decisions }: { range: TimeRange; decisions: Decision[] }): ReactNode {
  const series = useSeries(["allocated", "used", "fragmented"], ["cluster"], range);
  const marks = useMemo(() => decisions.map((each) => ({ at: madeAt(each), failed: each.state === "failed" })), [decisions]);
  return (
    <section className="panel">
      <Loaded resource={series} what="efficiency" rows={3}>
        {(data) => (
          <Chart
            title="Efficiency, decisions marked" note={counted(decisions.length, "decision")}
            lines={[
              { label: "Allocated", colour: "--series-1", series: data.of("allocated") },
              { label: "Computing", colour: "--series-2", dash: [7, 3], series: data.of("used") },
              { label: "Locked", colour: "--series-4", dash: [2, 3], series: data.of("fragmented") },
            ]}
            from={range.from} to={range.to} write={percent} most={1} marks={marks} height={170}
          />
        )}
      </Loaded>
    </section>
  );
}

function List({ all }: { all: Decision[] }): ReactNode {
  const { params } = useRoute();
  const { name } = useCluster();
  const now = useNow(10_000);
  const type = params.type ?? "";
  const limit = atOnce * Math.max(1, Number(params.pages) || 1);
  const matching = useMemo(() => byTime(all.filter((each) => type === "" || each.type === type)), [all, type]);
  const shown = matching.slice(0, limit);
  const selected = all.find((each) => each.id === params.id);
  // A link may name a decision outside the time range.
  const other = useResource(params.id && !selected ? `decision|${name}|${params.id}` : "", async (signal) => {
    const answer = await api.decisions(name, { limit: 1000 }, signal);
    return answer.decisions.find((each) => each.id === params.id);
  });
  const options = [
    { id: "", label: "All", note: count(all.length) },
    ...types
      .map((id) => ({ id: id as string, label: id as string, many: all.filter((each) => each.type === id).length }))
      .filter((each) => each.many > 0 || each.id === type)
      .map(({ id, label, many }) => ({ id, label, note: count(many) })),
  ];
  return (
    <>
      <h2 className="hidden">One by one</h2>
      <div className="toolbar">
        <Segments label="Kind of decision" value={type} options={options} onChange={(id) => setParams({ type: id })} />
        {matching.length > 0 && <CsvButton what="decisions" make={() => decisionsCsv(matching)} />}
      </div>
      {other.data && <ul className="decisions"><Item decision={other.data} now={now} open /></ul>}
      {params.id && !selected && !other.loading && !other.data && (
        <p className="notice">The decision {params.id} is not kept any more.</p>
      )}
      {shown.length === 0 ? (
        <Empty title="No decisions">In this period no GPU was repartitioned, no pod was evicted and no pool was scaled. Choose a longer period above.</Empty>
      ) : (
        <ul className="decisions">
          {shown.map((decision) => (
            <Item key={decision.id} decision={decision} now={now} open={decision.id === params.id} />
          ))}
        </ul>
      )}
      {matching.length > limit && (
        <Button className="button more" onPress={() => setParams({ pages: String(limit / atOnce + 1) })}>
          Show earlier ones ({count(matching.length - limit)} left)
        </Button>
      )}
      {all.length >= most && limit >= matching.length && (
        <p className="muted">These are the latest {count(most)}; choose a shorter time range for earlier ones.</p>
      )}
    </>
  );
}

function Item({ decision, now, open }: { decision: Decision; now: number; open: boolean }): ReactNode {
  const cost = costOf(decision);
  const changes = open ? changesOf(decision) : [];
  const changed = changes.filter((each) => difference(each.before, each.after).length > 0 || switchOf(each) !== "");
  // GPUs that stay as they are only where there is nothing else to show.
  const shown = changed.length > 0 ? changed : changes;
  const same = changes.length - shown.length;
  const made = madeAt(decision), done = doneAt(decision);
  const id = `decision-${decision.id}`;
  return (
    <li className="decision" data-open={open}>
      <button
        type="button" className="decision-head" aria-expanded={open} aria-controls={id}
        onClick={() => setParams({ id: open ? "" : decision.id })}
      >
        <Icon name={open ? "down" : "right"} />
        <time dateTime={new Date(made).toISOString()} title={clock(made, now)}>{clock(made, now, false)}</time>
        <span className="tag" data-type={decision.type}>{decision.type}</span>
        <span className="decision-summary ellipsis">
          <StoryText story={decision.story} />
        </span>
        <span className="decision-cost muted">
          {cost.made > 0 && <span>+{cost.made} made</span>}
          {cost.destroyed > 0 && <span>−{cost.destroyed} destroyed</span>}
          {decision.victims.length > 0 && <span className="bad-text">{counted(decision.victims.length, "pod")} evicted</span>}
          <span>{milliseconds(decision.took_ms)}</span>
        </span>
        <span className="decision-state" data-state={decision.state}>{decision.state}</span>
      </button>
      {open && (
        <div className="decision-body" id={id}>
          <p>
            <strong>Why</strong> {decision.story.reason} <span className="muted">({ago(made, now)})</span>
          </p>
          <div className="decision-columns">
            <Pods title="Served" pods={decision.pods} none="no pod" />
            <Pods title="Evicted" pods={decision.victims} none="none" />
          </div>
          {shown.length > 0 && <h3>Before and after</h3>}
          <ul className="changes">
            {shown.map((change) => (
              <ChangeRow key={`${change.node}/${change.index}`} change={change} at={done} />
            ))}
          </ul>
          {same > 0 && <p className="muted small">{counted(same, "GPU")} of these nodes {same === 1 ? "keeps its" : "keep their"} layout.</p>}
          <p className="small">
            <a href={href("map", { at: String(made - 30_000) })}>Map just before</a> ·{" "}
            <a href={href("map", { at: String(done + 10_000) })}>Map just after</a>
          </p>
        </div>
      )}
    </li>
  );
}

function Pods({ title, pods, none }: { title: string; pods: PodName[]; none: string }): ReactNode {
  return (
    <div>
      <h3>{title}</h3>
      {pods.length === 0 ? (
        <p className="muted">{none}</p>
      ) : (
        <ul className="names">
          {pods.slice(0, 100).map((pod) => (
            <li key={`${pod.namespace}/${pod.name}`}>
              <a href={href("workloads", { pod: `${pod.namespace}/${pod.name}` })}>{pod.namespace}/{pod.name}</a>
            </li>
          ))}
          {pods.length > 100 && <li className="muted">and {pods.length - 100} more</li>}
        </ul>
      )}
    </div>
  );
}

function ChangeRow({ change, at }: { change: Change; at: number }): ReactNode {
  const changes = difference(change.before, change.after);
  const other = switchOf(change);
  return (
    <li className="change">
      <a className="change-where" href={href("map", { at: String(at), sel: `${change.node}/${change.index}` })}>
        {change.node} · GPU {change.index}
      </a>
      <Strip label="before" layout={change.before} other={change.after} />
      <span aria-hidden="true" className="muted">→</span>
      <Strip label="after" layout={change.after} other={change.before} />
      <span className="change-words">
        {other && <strong>{other} </strong>}
        {changes.length === 0
          ? "layout unchanged"
          : changes.map(({ profile, change: many }) => `${many > 0 ? "+" : "−"}${Math.abs(many)} ${profile}`).join(", ")}
      </span>
    </li>
  );
}
