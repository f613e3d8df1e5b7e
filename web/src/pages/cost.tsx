// The page Cost: the bill of a month and its forecast, the owners of the cost, the waste, and remedies.
import { useContext, useState, type ReactNode } from "react";
import { api, type CostQuery } from "../api/client";
import type { Cost, CostBy, CostForecast, CostRow, Savings, Session } from "../api/types";
import { SinceContext, useBeat, useCluster, useNow, useResource, type Resource } from "../lib/data";
import {
  besideMonth, costParts, costSpan, dateName, daysOf, hourlyOf, hours, hoursOf, idleOf, labelOf, lostOf, micros, money, monthTitle, rowName, shareOf, stepOf, sum, usedOf,
  wastesOf, workedHour, type CostSpan, type Waste, type WasteId,
} from "../lib/costs";
import { duration, nothing, percent } from "../lib/format";
import { href, setParams, useRoute } from "../lib/route";
import { savingsRows, waitsText } from "../lib/savings";
import { useWide } from "../lib/wide";
import { Choice, Segments, type Option } from "../ui/controls";
import { PartsBar, PartsList, partStyle } from "../ui/costparts";
import { Figure } from "../ui/figure";
import { Icon } from "../ui/icons";
import { CsvButton } from "../ui/save";
import { Empty, Example, Loaded } from "../ui/states";
import "../styles/cost.css";

const hour = 3_600_000;
/** Rows of a table that are shown; the others are one. */
const shown = 40;
const groups = [
  { id: "namespace", label: "Team" }, { id: "quota", label: "Quota" }, { id: "pool", label: "Pool" }, { id: "model", label: "Model" },
  { id: "workload", label: "Job" },
] as const;
type Group = (typeof groups)[number]["id"];

export default function CostPage(): ReactNode {
  const { name, live, session } = useCluster();
  const { params } = useRoute();
  const span = costSpan(params.span, useNow(60_000));
  const beat = useBeat(30_000);
  const team = params.team || undefined;
  const by: Group = groups.find((each) => each.id === params.by)?.id ?? "namespace";
  const turn = `${name}|${span.id}|${team ?? ""}|${span.moving ? beat : "ended"}`;
  /** The same time for all requests of a turn: moving spans end now. */
  const query = (what: CostBy, more: Partial<CostQuery> = {}): CostQuery => ({ ...costSpan(params.span, live.now()), by: what, namespace: team, limit: shown, ...more });
  const costs = useResource(`cost|${turn}`, (signal) => api.cost(name, plain(query("namespace")), signal));
  // The server has the hours ready after the first answer.
  const ready = costs.data?.configured === true;
  const then = (what: string): string => (ready ? `${what}|${turn}` : "");
  const month = useResource(span.month ? then("forecast") : "", (signal) => api.costForecast(name, { month: span.month, namespace: team }, signal));
  const table = useResource(by === "namespace" ? "" : then(by), (signal) => api.cost(name, plain(query(by)), signal));
  // By whole days, a young history would be a single column: its hours are shown.
  const since = useContext(SinceContext) ?? 0;
  const step = stepOf({ from: Math.max(span.from, since), to: span.to });
  const times = useResource(then(step), (signal) => api.cost(name, plain(query(step, { limit: 1000 })), signal));
  const wide = useWide(2000);
  const most = wide ? 20 : 10;
  const wasters = useResource(then(`wasters|${most}`), (signal) => api.cost(name, plain(query("workload", { sort: "idle", limit: most })), signal));
  const recent = useResource(ready ? `recent|${name}|${team ?? ""}|${beat}` : "", (signal) => {
    const now = Math.round(live.now());
    return api.cost(name, { from: now - hour, to: now, by: "category", namespace: team }, signal);
  });
  // It is about the whole cluster, and a long time takes the server seconds: not with every beat.
  const replayed = team === undefined && session.can.all_namespaces && span.to - span.from <= 92 * 24 * hour;
  const savings = useResource(ready && replayed ? `savings|${name}|${span.id}` : "", (signal) => {
    const { from, to } = costSpan(params.span, live.now());
    return api.savings(name, { from: Math.round(from), to: Math.round(to) }, signal);
  });
  return (
    <>
      <div className="toolbar">
        <PeriodChoice span={span} chosen={params.span ?? ""} />
        {team !== undefined && (
          <button type="button" className="chip" onClick={() => setParams({ team: "" })}>
            namespace {team} <span aria-label="remove">×</span>
          </button>
        )}
        <span className="muted small grow">{periodText(span)}</span>
        {ready && <CsvButton what={`costs by ${by}`} make={() => api.costCsv(name, plain(query(by, { limit: 10_000 })))} />}
      </div>
      <Loaded resource={costs} what="costs" rows={6}>
        {(data) =>
          !data.configured ? <NoPrices /> : micros(data.total.gpu_hours) === 0 ? (
            <Empty title="No GPU reported in this time">
              <p>Costs begin with the first report of a GPU. Choose a later time above.</p>
            </Empty>
          ) : (
            <>
              <Notices data={data} session={session} />
              <div className="cost">
                <Summary data={data} month={span.month ? month.data : undefined} span={span} team={team} />
                <Times times={times} month={span.month && step === "day" ? span.month : undefined} forecast={month.data} />
                <Wastes data={data} recent={recent.data} />
                <Table costs={by === "namespace" ? costs : table} by={by} />
                <Wasters wasters={wasters} />
                {wide && <Briefs by={by} turn={turn} query={query} />}
                {replayed && <Saved savings={savings} />}
              </div>
            </>
          )
        }
      </Loaded>
    </>
  );
}

/* What repartitioning saved. */

function Saved({ savings }: { savings: Resource<Savings> }): ReactNode {
  return (
    <section className="panel cost-part" data-area="saved" aria-labelledby="cost-saved">
      <h2 id="cost-saved">Without repartitioning <span className="muted">the same pods on the same GPUs</span></h2>
      <Loaded resource={savings} what="savings" rows={3}>
        {(data) =>
          data.alternatives.length === 0 ? <p className="muted">No pods or no GPUs were reported in this time.</p> : (
            <>
              <div className="table-scroll" tabIndex={0} role="region" aria-label="Without repartitioning">
                <table className="plain">
                  <thead>
                    <tr>
                      <th scope="col"><span className="hidden">Alternative</span></th>
                      <th scope="col" className="number">All waiting, h</th>
                      <th scope="col" className="number">Pods started</th>
                      <th scope="col" className="number">GPUs to wait no longer</th>
                      <th scope="col" className="number">Saved {data.cost !== null && <span className="muted">{data.currency}</span>}</th>
                      <th scope="col">Layouts</th>
                    </tr>
                  </thead>
                  <tbody>
                    {savingsRows(data).map((row) => (
                      <tr key={row.name}>
                        <th scope="row">{row.name}</th>
                        <td className="number">{row.waiting}</td>
                        <td className="number">{row.started}</td>
                        <td className="number">{row.gpus}</td>
                        <td className="number strong">{row.saved || nothing}</td>
                        <td className="break">{row.layouts || nothing}</td>
                      </tr>
                    ))}
                  </tbody>
                </table>
              </div>
              <p className="muted small">
                {data.pods.toLocaleString("en")} pods asked for GPUs; {waitsText(data)}. An estimate: in both alternatives starts cost no time, CPU and
                memory never end, and nothing is evicted; ranges are those of {data.replays} replays. <code>nos report</code> has the same for a mail.
              </p>
            </>
          )
        }
      </Loaded>
    </section>
  );
}

/** Only what the API knows. */
const plain = ({ from, to, by, namespace, limit, sort }: CostQuery): CostQuery => ({ from: Math.round(from), to: Math.round(to), by, namespace, limit, sort });

/* The time. */

function periodText(span: CostSpan): string {
  const last = span.moving ? "now" : dateName(span.to - 1);
  return `${dateName(span.from)} to ${last}, days in UTC`;
}

const monthsBack = 12;

function PeriodChoice({ span, chosen }: { span: CostSpan; chosen: string }): ReactNode {
  const now = useNow(60_000);
  const dated = chosen.includes("..");
  const [dates, setDates] = useState(dated);
  const current = costSpan("", now).month ?? "";
  const months = Array.from({ length: monthsBack }, (_, back) => besideMonth(current, -back));
  const options: Option[] = [
    ...months.slice(0, 2).map((month, back) => ({ id: back === 0 ? "" : month, label: monthTitle(month), note: back === 0 ? "this month" : "last month" })),
    { id: "24h", label: "Last 24 hours" }, { id: "7d", label: "Last 7 days" }, { id: "30d", label: "Last 30 days" },
    ...months.slice(2).map((month) => ({ id: month, label: monthTitle(month) })),
    { id: "dates", label: "From date to date…" },
  ];
  return (
    <>
      <Choice
        label="Period" prefix="period" value={dates ? "dates" : span.id} options={options}
        onChange={(id) => {
          setDates(id === "dates");
          if (id !== "dates") setParams({ span: id });
        }}
      />
      {dates && <Dates key={span.id} span={span} />}
    </>
  );
}

function Dates({ span }: { span: CostSpan }): ReactNode {
  const now = useNow(60_000);
  const [from, setFrom] = useState(dateName(span.from));
  const [to, setTo] = useState(dateName(span.to - 1));
  const wrong = from === "" || to === "" || from > to;
  return (
    <form
      className="row wrap cost-dates"
      onSubmit={(event) => {
        event.preventDefault();
        if (!wrong) setParams({ span: `${from}..${to}` });
      }}
    >
      <label className="row muted">from <input type="date" value={from} max={dateName(now)} required onChange={(event) => setFrom(event.target.value)} /></label>
      <label className="row muted">to <input type="date" value={to} min={from} required onChange={(event) => setTo(event.target.value)} /></label>
      <button type="submit" className="button" disabled={wrong}>Show</button>
    </form>
  );
}

/* What stands in the way of a bill. */

const example = `telemetry:
  cost:
    currency: EUR
    note: list prices of 2026
    prices:
      - {pricePerGpuHour: 1.20, model: H100-80GB, capacityType: spot}
      - {pricePerGpuHour: 2.90, model: H100-80GB}
      - {pricePerGpuHour: 0.85}`;

const NoPrices = (): ReactNode => (
  <Empty title="No prices are set">
    <p>
      nos brings no prices of its own: set what a GPU costs you for an hour, and this page shows whose it was, what was
      used, idle, free or lost, for all of the time that has history. In the values of the chart:
    </p>
    <Example text={example} />
    <p>
      The first entry whose conditions a GPU meets counts. <code>helm upgrade</code> with these values is enough, and{" "}
      <code>nos cost</code> shows the same in a terminal. All conditions are in <code>docs/cost.md</code> of nos.
    </p>
  </Empty>
);

function Notices({ data, session }: { data: Cost; session: Session }): ReactNode {
  const kept = useKept();
  const unpriced = micros(data.total.unpriced_gpu_hours) ?? 0;
  const own = session.namespaces;
  return (
    <>
      {own && (
        <p className="notice" role="note">
          <Icon name="alert" /> You see the costs of {own.length === 0 ? "no namespace" : own.length > 6 ? `${own.length} namespaces` : own.join(", ")}. All
          others, and GPUs that no pod has, are one sum: “{labelOf("others").toLowerCase()}”.
        </p>
      )}
      {unpriced > 0 && (
        <p className="notice" role="note">
          <Icon name="alert" /> {hours(data.total.unpriced_gpu_hours)} of {hours(data.total.gpu_hours)} GPU hours have no price and are not in these sums: no
          entry of <code>telemetry.cost.prices</code> matches their GPUs. <a href={href("cost", { ...kept, by: "model" })}>Which models?</a>
        </p>
      )}
    </>
  );
}

/** Time and team of this page, for a link to it. */
function useKept(): { span: string; team: string } {
  const { span = "", team = "" } = useRoute().params;
  return { span, team };
}

/* The sum, its parts and its end. */

function Summary({ data, month, span, team }: { data: Cost; month: CostForecast | undefined; span: CostSpan; team: string | undefined }): ReactNode {
  const { total, currency } = data;
  const cost = micros(total.cost);
  const parts = costParts(total);
  const part = (value: number): string => `${percent(shareOf(value, cost))} of it`;
  const forecast = month?.forecast;
  const worked = workedHour(total);
  const title = span.month ? (span.moving ? `${monthTitle(span.month)} so far` : monthTitle(span.month)) : "Cost";
  return (
    <section className="panel cost-part" data-area="summary" aria-labelledby="cost-summary">
      <h2 id="cost-summary" className="hidden">Cost of the period</h2>
      <div className="figures cost-figures">
        <Figure name={title} value={money(cost, currency)} note={`${hours(total.gpu_hours)} GPU hours`} more={countedText(month)} />
        {forecast && (
          <Figure
            name="Forecast of the month" value={money(micros(forecast.cost), currency)}
            note={micros(forecast.low) === micros(forecast.high) ? "all days cost the same" : `${sum(micros(forecast.low))} to ${sum(micros(forecast.high))}`}
            more={micros(forecast.low) === micros(forecast.high) ? "" : `${Math.round(forecast.confidence * 10)} of 10 times`}
          />
        )}
        <Figure name="Used" value={money(usedOf(total), currency)} note={part(usedOf(total))} />
        <Figure name="Idle while held" value={money(idleOf(total), currency)} note={part(idleOf(total))} tone={idleOf(total) > usedOf(total) ? "warn" : ""} />
        {team === undefined && <Figure name="Held by no pod" value={money(lostOf(total), currency)} note={part(lostOf(total))} />}
        <Figure name="Borrowed" value={money(micros(total.borrowed), currency)} note="by pods over their quotas" />
        {worked !== null && <Figure name="An hour of GPU work" value={money(worked, currency)} note={`a GPU costs ${money((cost ?? 0) / ((micros(total.gpu_hours) ?? 1) / 1e6), currency)}`} />}
      </div>
      <PartsBar parts={parts} cost={cost ?? 0} />
      <PartsList parts={parts} cost={cost} />
      <p className="muted small">
        {forecast && (
          <>
            The forecast is what the month has cost so far, and {money(micros(forecast.per_day), currency)} for each day that is left: the mean of the last{" "}
            {forecast.days} days. Its range follows from how much these days differ; plans for more or fewer GPUs are not known to it.{" "}
          </>
        )}
        {month && !forecast && span.moving && <>There is no forecast of the month yet: {month.why}. </>}
        {data.note && <>Prices: {data.note}.</>}
      </p>
    </section>
  );
}

function countedText(month: CostForecast | undefined): string {
  if (!month || month.counted_from <= month.from) return "";
  return `counted since ${dateName(month.counted_from)}`;
}

/* Over time. */

/** `month`: all of its days are drawn, those to come as the forecast has them. */
function Times({ times, month, forecast }: { times: Resource<Cost>; month: string | undefined; forecast: CostForecast | undefined }): ReactNode {
  const { name } = useCluster();
  const { team } = useKept();
  const hourly = times.data?.by === "hour";
  return (
    <section className="panel cost-part" data-area="times" aria-labelledby="cost-times">
      <div className="answer-head">
        <h2 id="cost-times">{hourly ? "By hour" : "By day"} <span className="muted">{times.data?.currency}</span></h2>
        {times.data && (
          <CsvButton small what={`costs by ${hourly ? "hour" : "day"}`} make={() => api.costCsv(name, plain({ ...times.data!, namespace: team || undefined, limit: 10_000 }))} />
        )}
      </div>
      <Loaded resource={times} what="costs over time" rows={2}>
        {(data) => {
          const rows = data.rows.filter((row) => row.kind !== "rest");
          const known = new Map(rows.map((row) => [row.name, row]));
          const names = month && data.by === "day" ? daysOf(month) : hoursOf(rows.map((row) => row.name));
          const expected = forecast && forecast.month === month ? (micros(forecast.forecast?.per_day) ?? 0) : 0;
          return <Columns names={names} rows={known} currency={data.currency} expected={expected} />;
        }}
      </Loaded>
    </section>
  );
}

const timeName = (name: string): string => (name.includes("T") ? name.slice(11, 16) : name.slice(5));

interface ColumnsProps {
  names: readonly string[];
  rows: ReadonlyMap<string, CostRow>;
  currency: string;
  /** The cost of each day after the last row; 0: unknown. */
  expected: number;
}

function Columns({ names, rows, currency, expected }: ColumnsProps): ReactNode {
  const most = Math.max(1, expected, ...[...rows.values()].map((row) => micros(row.cost) ?? 0));
  const last = [...rows.keys()].at(-1) ?? "";
  const label = [...rows.values()].map((row) => `${row.name.replace("T", " ")} ${sum(micros(row.cost))}`).join(", ");
  const marks = [...new Set([names[0], names.length > 8 ? names[Math.floor(names.length / 2)] : undefined, names.at(-1)])].filter((each) => each !== undefined);
  return (
    <>
      <div className="cost-columns" role="img" aria-label={`Cost in ${currency}: ${label}`}>
        <span className="cost-most muted small">{sum(most)}</span>
        {names.map((name) => {
          const row = rows.get(name);
          const coming = !row && name > last && expected > 0;
          return (
            <span key={name} className="cost-column" title={row ? titleOf(row, currency) : coming ? `${name}: expected ${money(expected, currency)}` : name < last ? `${name}: nothing was reported` : undefined}>
              {row && costParts(row).reverse().map((part) => (
                <span key={part.id} data-part={partStyle[part.id]} style={{ height: `${(part.cost / most) * 100}%` }} />
              ))}
              {coming && <span className="cost-expected" style={{ height: `${(expected / most) * 100}%` }} />}
            </span>
          );
        })}
      </div>
      <div className="cost-marks muted small" aria-hidden="true">
        {marks.map((name) => <span key={name}>{timeName(name)}</span>)}
      </div>
      {expected > 0 && names.at(-1) !== last && <p className="muted small">Outlined: expected days.</p>}
    </>
  );
}

const titleOf = (row: CostRow, currency: string): string =>
  [`${row.name.replace("T", " ")}: ${money(micros(row.cost), currency)}`, ...costParts(row).map((part) => `${part.label} ${sum(part.cost)}`)].join("\n");

/* Whose it was. */

function Table({ costs, by }: { costs: Resource<Cost>; by: Group }): ReactNode {
  return (
    <section className="panel cost-part" data-area="table" aria-labelledby="cost-table">
      <div className="answer-head">
        <h2 id="cost-table">Whose it was</h2>
        <Segments label="By" value={by} options={groups} onChange={(id) => setParams({ by: id === "namespace" ? "" : id })} />
      </div>
      <Loaded resource={costs} what="costs" rows={4}>
        {(data) => (data.by === by ? <Rows data={data} by={by} /> : null)}
      </Loaded>
    </section>
  );
}

function Rows({ data, by }: { data: Cost; by: Group }): ReactNode {
  const all = micros(data.total.cost);
  const most = Math.max(1, ...data.rows.map((row) => micros(row.cost) ?? 0));
  const title = groups.find((each) => each.id === by)?.label ?? "";
  return (
    <div className="table-scroll cost-rows" tabIndex={0} role="region" aria-label={`Costs by ${title.toLowerCase()}`}>
      <table className="table costs">
        <thead>
          <tr>
            <th scope="col">{title}</th>
            <th scope="col" className="number">Cost, {data.currency}</th>
            <th scope="col" className="number">Share</th>
            <th scope="col" className="cost-bar-cell">Used, idle, lost</th>
            <th scope="col" className="number">Used</th>
            <th scope="col" className="number">Idle</th>
            <th scope="col" className="number">Borrowed</th>
            <th scope="col" className="number">GPU hours</th>
          </tr>
        </thead>
        <tbody>
          {data.rows.map((row) => {
            const cost = micros(row.cost);
            const known = row.kind !== "others" && row.kind !== "unallocated";
            return (
              <tr key={`${row.kind}/${row.namespace}/${row.name}`}>
                <th scope="row"><Name row={row} by={by} /></th>
                <td className="number strong" data-label="Cost">{row.cost === null ? "no price" : sum(cost)}</td>
                <td className="number" data-label="Share">{percent(shareOf(cost, all))}</td>
                <td className="cost-bar-cell"><Bar row={row} by={by} most={most} currency={data.currency} /></td>
                <td className="number" data-label="Used">{known ? sum(usedOf(row)) : nothing}</td>
                <td className="number" data-label="Idle" data-tone={known && idleOf(row) > usedOf(row) ? "warn" : undefined}>{known ? sum(idleOf(row)) : nothing}</td>
                <td className="number" data-label="Borrowed">{known ? sum(micros(row.borrowed)) : nothing}</td>
                <td className="number" data-label="GPU hours">{hours(row.gpu_hours)}</td>
              </tr>
            );
          })}
        </tbody>
        <tfoot>
          <tr>
            <th scope="row">Total</th>
            <td className="number strong" data-label="Cost">{sum(all)}</td>
            <td className="number" data-label="Share">{percent(1)}</td>
            <td className="cost-bar-cell" />
            <td className="number" data-label="Used">{sum(usedOf(data.total))}</td>
            <td className="number" data-label="Idle">{sum(idleOf(data.total))}</td>
            <td className="number" data-label="Borrowed">{sum(micros(data.total.borrowed))}</td>
            <td className="number" data-label="GPU hours">{hours(data.total.gpu_hours)}</td>
          </tr>
        </tfoot>
      </table>
    </div>
  );
}

/** Wide screens show all groups at once. */
function Briefs({ by, turn, query }: { by: Group; turn: string; query: (what: CostBy, more?: Partial<CostQuery>) => CostQuery }): ReactNode {
  const others = groups.filter((each) => each.id !== by && each.id !== "workload").slice(0, 3);
  return (
    <div className="cost-briefs">
      {others.map((each) => (
        <Brief key={each.id} id={each.id} title={`By ${each.label.toLowerCase()}`} turn={turn} query={query} />
      ))}
    </div>
  );
}

function Brief({ id, title, turn, query }: { id: Group; title: string; turn: string; query: (what: CostBy, more?: Partial<CostQuery>) => CostQuery }): ReactNode {
  const { name } = useCluster();
  const costs = useResource(`${id}|${turn}`, (signal) => api.cost(name, plain(query(id, { limit: 9 })), signal));
  return (
    <section className="panel cost-part" aria-labelledby={`cost-by-${id}`}>
      <h2 id={`cost-by-${id}`}>{title} <span className="muted">{costs.data?.currency}</span></h2>
      <Loaded resource={costs} what="costs" rows={3}>
        {(data) => {
          const most = Math.max(1, ...data.rows.map((row) => micros(row.cost) ?? 0));
          return (
            <table className="plain cost-wasters">
              <tbody>
                {data.rows.map((row) => (
                  <tr key={`${row.kind}/${row.name}`}>
                    <th scope="row" className="break"><Name row={row} by={id} /></th>
                    <td className="cost-idle"><Bar row={row} by={id} most={most} currency={data.currency} /></td>
                    <td className="number strong">{row.cost === null ? "no price" : sum(micros(row.cost))}</td>
                    <td className="number">{percent(shareOf(micros(row.cost), micros(data.total.cost)))}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          );
        }}
      </Loaded>
    </section>
  );
}

/** The parts of a row, against the largest one. */
function Bar({ row, by, most, currency }: { row: CostRow; by: CostBy; most: number; currency: string }): ReactNode {
  const parts = costParts(row);
  return (
    <span
      className="cost-bar" role="img" aria-label={parts.map((part) => `${part.label} ${sum(part.cost)}`).join(", ") || "no cost"}
      title={titleOf({ ...row, name: rowName(row, by) }, currency)}
    >
      {parts.map((part) => (
        <span key={part.id} data-part={partStyle[part.id]} style={{ width: `${(part.cost / most) * 100}%` }} />
      ))}
    </span>
  );
}

function Name({ row, by }: { row: CostRow; by: CostBy }): ReactNode {
  const kept = useKept();
  const name = rowName(row, by);
  switch (row.kind) {
    case "namespace":
      return <a href={href("cost", { ...kept, team: row.name, by: "workload" })} title="its jobs and pods">{name}</a>;
    case "quota":
      return <a href={href("quotas")}>{name}</a>;
    case "pool":
      return <a href={href("pools")}>{name}</a>;
    case "job":
    case "pod":
      return <Workload row={row} />;
    case "model":
      return <span>{name}</span>;
    default:
      return <span className="muted">{name}</span>;
  }
}

function Workload({ row }: { row: CostRow }): ReactNode {
  const link = row.kind === "job" ? href("workloads", { ns: row.namespace, job: row.name }) : href("workloads", { pod: `${row.namespace}/${row.name}` });
  return (
    <span className="cost-workload">
      <a className="break" href={link}>{row.name}</a> <span className="muted small nowrap">{row.kind === "pod" ? "pod, " : ""}{row.namespace}</span>
    </span>
  );
}

/* Waste. */

const actions: Record<WasteId, { text: string; link: string; params: Record<string, string> } | undefined> = {
  free: { text: "Give empty nodes back, or let waiting pods take them", link: "map", params: { by: "state" } },
  locked: { text: "Let a plan of moves join the free slots, or ask for sizes that fit", link: "decisions", params: {} },
  stranded: { text: "Repair or uncordon nodes; ask for less CPU and memory", link: "map", params: { by: "state" } },
  idle: { text: "Ask the owners below; share by MPS or smaller slices", link: "map", params: { by: "utilization" } },
  silent: { text: "See why agents are silent", link: "overview", params: {} },
};

const monthHours = 730;

function Wastes({ data, recent }: { data: Cost; recent: Cost | undefined }): ReactNode {
  const since = useContext(SinceContext) ?? 0;
  const all = wastesOf(data.total, hourlyOf(recent, since));
  const totals = all.reduce((both, each) => ({ cost: both.cost + each.cost, hourly: both.hourly + each.hourly }), { cost: 0, hourly: 0 });
  return (
    <section className="panel cost-part" data-area="waste" aria-labelledby="cost-waste">
      <h2 id="cost-waste">Waste <span className="muted">{data.currency}</span></h2>
      <div className="table-scroll" tabIndex={0} role="region" aria-label="Waste by kind">
        <table className="plain cost-waste">
          <thead>
            <tr>
              <th scope="col">Kind, and what to do</th>
              <th scope="col" className="number">In this time</th>
              <th scope="col" className="number">Now, per hour</th>
              <th scope="col" className="number" title={`${monthHours} hours of it`}>Per month so</th>
            </tr>
          </thead>
          <tbody>{all.map((waste) => <WasteRow key={waste.id} waste={waste} known={recent !== undefined} />)}</tbody>
          <tfoot>
            <tr>
              <th scope="row">Together</th>
              <WasteAmounts cost={totals.cost} hourly={recent ? totals.hourly : null} />
            </tr>
          </tfoot>
        </table>
      </div>
    </section>
  );
}

const WasteAmounts = ({ cost, hourly }: { cost: number; hourly: number | null }): ReactNode => (
  <>
    <td className="number strong" data-label="In this time">{sum(cost)}</td>
    <td className="number" data-label="Now, per hour">{sum(hourly)}</td>
    <td className="number" data-label="Per month so">{sum(hourly === null ? null : hourly * monthHours)}</td>
  </>
);

function WasteRow({ waste, known }: { waste: Waste; known: boolean }): ReactNode {
  const action = actions[waste.id];
  return (
    <tr>
      <th scope="row">
        <strong>{waste.name}</strong> <span className="muted">{waste.what}</span>
        {action && waste.cost + waste.hourly > 0 && <a className="cost-action small" href={href(action.link as "map", action.params)}>{action.text}</a>}
      </th>
      <WasteAmounts cost={waste.cost} hourly={known ? waste.hourly : null} />
    </tr>
  );
}

function Wasters({ wasters }: { wasters: Resource<Cost> }): ReactNode {
  return (
    <section className="panel cost-part" data-area="wasters" aria-labelledby="cost-wasters">
      <h2 id="cost-wasters">Most expensive idle jobs and pods <span className="muted">{wasters.data?.currency}</span></h2>
      <Loaded resource={wasters} what="idle jobs and pods" rows={3}>
        {(data) => {
          const rows = data.rows.filter((row) => (row.kind === "job" || row.kind === "pod") && idleOf(row) > 0);
          if (rows.length === 0) return <p className="muted">No pod was idle where its use is measured.</p>;
          const most = Math.max(...rows.map(idleOf));
          return (
            <div className="table-scroll" tabIndex={0} role="region" aria-label="Idle jobs and pods">
              <table className="plain cost-wasters">
                <thead>
                  <tr>
                    <th scope="col">Job or pod</th>
                    <th scope="col">Owner</th>
                    <th scope="col" className="number">Idle</th>
                    <th scope="col"><span className="hidden">Against the largest</span></th>
                    <th scope="col" className="number">of its cost</th>
                    <th scope="col" className="number">GPU time</th>
                  </tr>
                </thead>
                <tbody>
                  {rows.map((row) => (
                    <tr key={`${row.kind}/${row.namespace}/${row.name}`}>
                      <th scope="row" className="break"><WasterName row={row} /></th>
                      <td className="break"><a href={href("team", { ns: row.namespace })}>{row.namespace}</a></td>
                      <td className="number strong">{sum(idleOf(row))}</td>
                      <td className="cost-idle"><span className="cost-bar" aria-hidden="true"><span data-part="idle" style={{ width: `${(idleOf(row) / most) * 100}%` }} /></span></td>
                      <td className="number">{percent(shareOf(idleOf(row), micros(row.cost)))}</td>
                      <td className="number">{duration((micros(row.gpu_hours) ?? 0) / 1e6 * 3600)}</td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </div>
          );
        }}
      </Loaded>
    </section>
  );
}

const WasterName = ({ row }: { row: CostRow }): ReactNode => (
  <a href={row.kind === "job" ? href("workloads", { ns: row.namespace, job: row.name }) : href("workloads", { pod: `${row.namespace}/${row.name}` })}>{row.name}</a>
);
