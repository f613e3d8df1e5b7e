// Quotas: guaranteed, used, borrowed and lent resources, now and over time.
import { useMemo, type ReactNode } from "react";
import { api } from "../api/client";
import type { Quota, QuotaAmounts, Series } from "../api/types";
import { loadPending, useAt, useBeat, useCluster, useEvent, useOverview, useRange, useResource } from "../lib/data";
import { amount, count, counted } from "../lib/format";
import { href } from "../lib/route";
import { useSeries } from "../lib/series";
import { quotasCsv } from "../lib/tables";
import { gigabytesOfGpu, inGpus, isComposite, quotaName, subjectOf } from "../lib/teams";
import { teamOf } from "../map/cells";
import { Chart } from "../ui/chart";
import { CsvButton } from "../ui/save";
import { QuotaBar } from "../ui/quotabar";
import { Empty, Example, Loaded } from "../ui/states";

export default function QuotasPage(): ReactNode {
  const { name } = useCluster();
  const at = useAt();
  const quotas = useResource(`quotas|${name}|${at ?? ""}`, (signal) => api.quotas(name, at, signal));
  useEvent("quotas", (data) => {
    const next = data as { quotas?: Quota[] };
    if (at === undefined && Array.isArray(next.quotas)) quotas.set(() => ({ quotas: next.quotas ?? [] }));
  });
  useEvent("reset", quotas.reload);
  return (
    <Loaded resource={quotas} what="quotas" rows={6}>
      {(data) =>
        data.quotas.length === 0 ? (
          <Empty title="There are no quotas">
            <p>
              An ElasticQuota guarantees its namespace an amount and lends what is not used. Save this example for one of
              your namespaces and give it to <code>kubectl apply -f</code>:
            </p>
            <Example text={example} />
          </Empty>
        ) : (
          <Body quotas={data.quotas} />
        )
      }
    </Loaded>
  );
}

const example = `apiVersion: nos.nebuly.com/v1alpha1
kind: ElasticQuota
metadata: {name: quota, namespace: research}
spec:
  min: {nos.nebuly.com/gpu-memory: 160}
  max: {nos.nebuly.com/gpu-memory: 320}`;

function Body({ quotas }: { quotas: Quota[] }): ReactNode {
  const { name } = useCluster();
  const beat = useBeat(10_000);
  const gigabytes = gigabytesOfGpu(useOverview().data);
  const pending = useResource(`pending|${name}|${beat}`, (signal) => loadPending(name, signal));
  const waiting = useMemo(() => {
    const many = new Map<string, number>();
    for (const pod of pending.data ?? []) {
      const team = teamOf({ namespace: pod.namespace, pod: pod.name, quota: pod.quota });
      many.set(team, (many.get(team) ?? 0) + 1);
    }
    return many;
  }, [pending.data]);
  const resources = [...new Set(quotas.flatMap((each) => Object.keys(each.resources)))].sort();
  return (
    <>
      {resources.map((resource) => {
        const mine = quotas.filter((each) => each.resources[resource]);
        return (
          <section key={resource} className="quota-section" aria-label={resource}>
            <div className="answer-head">
              <h2>
                {resource.replace(/^[^/]*\//, "")} <span className="muted">{resource}</span>
              </h2>
              <CsvButton what={`quotas of ${resource}`} make={() => quotasCsv(mine, resource, waiting)} />
            </div>
            <QuotaTable quotas={mine} resource={resource} gigabytes={gigabytes} waiting={waiting} />
            <Lending quotas={mine} resource={resource} gigabytes={gigabytes} />
            <QuotaCharts quotas={mine} resource={resource} />
          </section>
        );
      })}
    </>
  );
}

interface TableProps {
  quotas: Quota[];
  resource: string;
  /** GB of one GPU of the cluster; 0: unknown. */
  gigabytes: number;
  /** Pods that wait, by the name of their quota. */
  waiting: Map<string, number>;
}

function QuotaTable({ quotas, resource, gigabytes, waiting }: TableProps): ReactNode {
  const most = Math.max(1, ...quotas.map((each) => scaleOf(each.resources[resource])));
  const gpus = inGpus(resource, 1, gigabytes) !== null && resource !== "nvidia.com/gpu";
  const cell = (value: number | undefined, none = ""): ReactNode =>
    value === undefined ? none : <Amount resource={resource} value={value} gpus={gpus ? inGpus(resource, value, gigabytes) : null} />;
  const sum = (of: (amounts: QuotaAmounts) => number): number =>
    quotas.reduce((all, each) => all + (each.resources[resource] ? of(each.resources[resource]) : 0), 0);
  return (
    <div className="panel table-scroll" tabIndex={0} role="region" aria-label={`Quotas of ${resource}`}>
      <table className="table quotas">
        <thead>
          <tr>
            <th scope="col">Quota</th>
            <th scope="col" className="quota-bar-cell">Used of guaranteed, min (dotted) and max</th>
            <th scope="col" className="number">Used</th>
            <th scope="col" className="number">Min</th>
            <th scope="col" className="number" title="Min, and its share of what other quotas leave unused">Guaranteed</th>
            <th scope="col" className="number">Max</th>
            <th scope="col" className="number">Borrowed</th>
            <th scope="col" className="number">Lent</th>
            <th scope="col" className="number">Waiting pods</th>
          </tr>
        </thead>
        <tbody>
          {quotas.map((quota) => {
            const amounts = quota.resources[resource];
            if (!amounts) return null;
            const waits = waiting.get(quotaName(quota)) ?? 0;
            return (
              <tr key={`${quota.type}/${quota.namespace}/${quota.name}`}>
                <th scope="row">
                  <a href={href("workloads", { ns: quota.namespaces[0] ?? quota.namespace })}>{quotaName(quota)}</a>
                  {isComposite(quota) && <span className="tag">{counted(quota.namespaces.length, "namespace")}</span>}
                </th>
                <td className="quota-bar-cell"><QuotaBar amounts={amounts} most={most} /></td>
                <td className="number strong" data-label="Used">{cell(amounts.used)}</td>
                <td className="number" data-label="Min">{cell(amounts.min)}</td>
                <td className="number" data-label="Guaranteed">{cell(amounts.guaranteed)}</td>
                <td className="number" data-label="Max">{cell(amounts.max, "none")}</td>
                <td className="number" data-label="Borrowed" data-tone={amounts.borrowed > 0 ? "warn" : undefined}>{cell(amounts.borrowed)}</td>
                <td className="number" data-label="Lent">{cell(amounts.lent)}</td>
                <td className="number" data-label="Waiting">
                  {waits === 0 ? "0" : (
                    <a href={href("workloads", { ns: quota.namespaces[0] ?? quota.namespace, state: "pending" })}>{count(waits)}</a>
                  )}
                </td>
              </tr>
            );
          })}
        </tbody>
        {quotas.length > 1 && (
          <tfoot>
            <tr>
              <th scope="row" colSpan={2}>All quotas</th>
              <td className="number strong">{cell(sum((each) => each.used))}</td>
              <td className="number">{cell(sum((each) => each.min))}</td>
              <td className="number">{cell(sum((each) => each.guaranteed))}</td>
              <td />
              <td className="number">{cell(sum((each) => each.borrowed))}</td>
              <td className="number">{cell(sum((each) => each.lent))}</td>
              <td className="number">{count([...waiting.values()].reduce((all, each) => all + each, 0))}</td>
            </tr>
          </tfoot>
        )}
      </table>
    </div>
  );
}

/** An amount, and below it the same in GPUs. */
function Amount({ resource, value, gpus }: { resource: string; value: number; gpus: number | null }): ReactNode {
  return (
    <>
      <span className="nowrap">{amount(resource, Math.round(value * 10) / 10)}</span>
      {gpus !== null && value > 0 && <span className="muted small nowrap quota-gpus">{counted(Math.round(gpus * 10) / 10, "GPU")}</span>}
    </>
  );
}

function scaleOf(amounts: QuotaAmounts | undefined): number {
  return amounts ? Math.max(amounts.used, amounts.guaranteed, amounts.min, amounts.max ?? 0) : 0;
}

/** Who lends, and who borrows. nos lends from one pool, so pairs are known only if one side is a single quota. */
function Lending({ quotas, resource, gigabytes }: Omit<TableProps, "waiting">): ReactNode {
  const of = (key: "lent" | "borrowed"): { name: string; value: number }[] =>
    quotas
      .map((quota) => ({ name: quotaName(quota), value: quota.resources[resource]?.[key] ?? 0 }))
      .filter((each) => each.value > 0)
      .sort((a, b) => b.value - a.value);
  const [lenders, borrowers] = [of("lent"), of("borrowed")];
  if (lenders.length === 0 && borrowers.length === 0) return null;
  const most = Math.max(1, ...lenders.map((each) => each.value), ...borrowers.map((each) => each.value));
  const total = (all: typeof lenders): number => all.reduce((sum, each) => sum + each.value, 0);
  const beyond = total(borrowers) - total(lenders);
  const side = (title: string, all: typeof lenders, tone: string, none: string): ReactNode => (
    <div>
      <h3>{title}</h3>
      {all.length === 0 ? <p className="muted">{none}</p> : (
        <ul className="lending-list">
          {all.slice(0, 20).map(({ name, value }) => (
            <li key={name}>
              <span className="ellipsis">{name}</span>
              <span className="lending-bar" data-tone={tone} aria-hidden="true"><span style={{ width: `${(value / most) * 100}%` }} /></span>
              <span className="number"><Amount resource={resource} value={value} gpus={resource === "nvidia.com/gpu" ? null : inGpus(resource, value, gigabytes)} /></span>
            </li>
          ))}
        </ul>
      )}
    </div>
  );
  return (
    <div className="panel" role="region" aria-label={`Lending of ${resource}`}>
      <h3 className="lending-title">{lendingText(lenders, borrowers)}{beyond > 0.5 && lenders.length > 0 && `, and ${amount(resource, Math.round(beyond))} that no quota guarantees`}</h3>
      <div className="lending">
        {side("Lent by", lenders, "lent", "no quota: what is borrowed is beyond all guarantees")}
        {side("Borrowed by", borrowers, "borrowed", "no quota")}
      </div>
    </div>
  );
}

function lendingText(lenders: { name: string }[], borrowers: { name: string }[]): string {
  const names = (all: { name: string }[]): string => (all.length > 3 ? counted(all.length, "quota") : all.map((each) => each.name).join(" and "));
  if (borrowers.length === 0) return `${names(lenders)} ${lenders.length === 1 ? "leaves" : "leave"} a part of the guarantee to others, and no quota borrows`;
  if (lenders.length === 0) return `${names(borrowers)} ${borrowers.length === 1 ? "borrows" : "borrow"} what no quota guarantees`;
  return `${names(borrowers)} ${borrowers.length === 1 ? "borrows" : "borrow"} from ${names(lenders)}`;
}

const metrics = ["used", "min", "guaranteed", "borrowed", "lent"] as const;

/** A line that is zero all the time says less than its absence. */
const isFlat = (series: Series | undefined): boolean => (series?.max ?? []).every((each) => !each);

function QuotaCharts({ quotas, resource }: { quotas: Quota[]; resource: string }): ReactNode {
  const range = useRange();
  const subjects = quotas.slice(0, 24).map((each) => subjectOf(each, resource));
  const series = useSeries(metrics, subjects, range);
  return (
    <Loaded resource={series} what="quotas over time" rows={4}>
      {(data) => (
        <div className="charts">
          {quotas.slice(0, 24).map((quota, place) => {
            const subject = subjects[place] ?? "";
            return (
              <Chart
                key={subject} title={isComposite(quota) ? `${quotaName(quota)}, composite` : quotaName(quota)} from={range.from} to={range.to} height={130}
                write={(value) => amount(resource, value === null || value === undefined ? value : Math.round(value))}
                lines={[
                  { label: "Used", colour: "--series-1", series: data.of("used", subject), band: true },
                  { label: "Min", colour: "--text", dash: [1, 3], series: data.of("min", subject) },
                  { label: "Guaranteed", colour: "--muted", dash: [2, 3], series: data.of("guaranteed", subject) },
                  { label: "Borrowed", colour: "--series-4", dash: [7, 3], series: data.of("borrowed", subject) },
                  { label: "Lent", colour: "--series-2", dash: [4, 2, 1, 2], series: data.of("lent", subject) },
                ].filter((line) => line.label === "Used" || !isFlat(line.series))}
              />
            );
          })}
          {quotas.length > 24 && <p className="muted">{quotas.length - 24} more quotas are in the table alone.</p>}
        </div>
      )}
    </Loaded>
  );
}
