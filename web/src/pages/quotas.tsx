// Quotas: guaranteed, used, borrowed and lent resources, now and over time.
import type { ReactNode } from "react";
import { api } from "../api/client";
import type { Quota, QuotaAmounts } from "../api/types";
import { useAt, useCluster, useEvent, useRange, useResource } from "../lib/data";
import { amount, counted, percent } from "../lib/format";
import { href } from "../lib/route";
import { useSeries } from "../lib/series";
import { Chart } from "../ui/chart";
import { Empty, Loaded } from "../ui/states";

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
              An ElasticQuota guarantees its namespace an amount and lends what is not used. <code>kubectl apply</code>{" "}
              one to see it here.
            </p>
          </Empty>
        ) : (
          <Body quotas={data.quotas} />
        )
      }
    </Loaded>
  );
}

function Body({ quotas }: { quotas: Quota[] }): ReactNode {
  const resources = [...new Set(quotas.flatMap((each) => Object.keys(each.resources)))].sort();
  return (
    <>
      {resources.map((resource) => {
        const mine = quotas.filter((each) => each.resources[resource]);
        return (
          <section key={resource} className="quota-section" aria-label={resource}>
            <h2>
              {resource.replace(/^[^/]*\//, "")} <span className="muted">{resource}</span>
            </h2>
            <QuotaTable quotas={mine} resource={resource} />
            <QuotaCharts quotas={mine} resource={resource} />
          </section>
        );
      })}
    </>
  );
}

const nameOf = (quota: Quota): string =>
  quota.name === "quota" ? quota.namespace : `${quota.namespace}/${quota.name}`;

const isComposite = (quota: Quota): boolean => quota.type === "CompositeElasticQuota";

/** Quotas of both kinds may have the same name. */
const subjectOf = (quota: Quota, resource: string): string =>
  `${isComposite(quota) ? "composite-quota" : "quota"}/${quota.namespace}/${quota.name}/${resource}`;

function QuotaTable({ quotas, resource }: { quotas: Quota[]; resource: string }): ReactNode {
  const most = Math.max(1, ...quotas.map((each) => scaleOf(each.resources[resource])));
  const write = (value: number | undefined): string => amount(resource, value);
  return (
    <div className="panel table-scroll" tabIndex={0} role="region" aria-label={`Quotas of ${resource}`}>
      <table className="table quotas">
        <thead>
          <tr>
            <th scope="col">Quota</th>
            <th scope="col" className="quota-bar-cell">Used of guaranteed and max</th>
            <th scope="col" className="number">Guaranteed</th>
            <th scope="col" className="number">Used</th>
            <th scope="col" className="number">Borrowed</th>
            <th scope="col" className="number">Lent</th>
            <th scope="col" className="number">Max</th>
          </tr>
        </thead>
        <tbody>
          {quotas.map((quota) => {
            const amounts = quota.resources[resource];
            if (!amounts) return null;
            return (
              <tr key={`${quota.type}/${quota.namespace}/${quota.name}`}>
                <th scope="row">
                  <a href={href("workloads", { ns: quota.namespaces[0] ?? quota.namespace })}>{nameOf(quota)}</a>
                  {isComposite(quota) && <span className="tag">{counted(quota.namespaces.length, "namespace")}</span>}
                </th>
                <td className="quota-bar-cell"><QuotaBar amounts={amounts} most={most} /></td>
                <td className="number">{write(amounts.guaranteed)}</td>
                <td className="number strong">{write(amounts.used)}</td>
                <td className="number" data-tone={amounts.borrowed > 0 ? "warn" : undefined}>{write(amounts.borrowed)}</td>
                <td className="number">{write(amounts.lent)}</td>
                <td className="number">{amounts.max === undefined ? "none" : write(amounts.max)}</td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}

function scaleOf(amounts: QuotaAmounts | undefined): number {
  return amounts ? Math.max(amounts.used, amounts.guaranteed, amounts.min, amounts.max ?? 0) : 0;
}

/** Usage within the guarantee, then borrowed usage; marks at the guarantee and the maximum. */
function QuotaBar({ amounts, most }: { amounts: QuotaAmounts; most: number }): ReactNode {
  const share = (value: number): string => `${Math.max(0, Math.min(1, value / most)) * 100}%`;
  const own = Math.max(0, amounts.used - amounts.borrowed);
  const text = `uses ${percent(amounts.guaranteed > 0 ? amounts.used / amounts.guaranteed : 0)} of what is guaranteed`;
  return (
    <span className="quota-bar" role="img" aria-label={text} title={text}>
      <span className="quota-guaranteed" style={{ width: share(amounts.guaranteed) }} />
      <span className="quota-own" style={{ width: share(own) }} />
      <span className="quota-borrowed" style={{ left: share(own), width: share(amounts.borrowed) }} />
      {amounts.max !== undefined && <span className="quota-max" style={{ left: share(amounts.max) }} />}
    </span>
  );
}

const metrics = ["used", "guaranteed", "borrowed", "lent"] as const;

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
                key={subject} title={isComposite(quota) ? `${nameOf(quota)}, composite` : nameOf(quota)} from={range.from} to={range.to} height={130}
                write={(value) => amount(resource, value === null || value === undefined ? value : Math.round(value))}
                lines={[
                  { label: "Guaranteed", colour: "--muted", dash: [2, 3], series: data.of("guaranteed", subject) },
                  { label: "Used", colour: "--series-1", series: data.of("used", subject), band: true },
                  { label: "Borrowed", colour: "--series-4", dash: [7, 3], series: data.of("borrowed", subject) },
                  { label: "Lent", colour: "--series-2", dash: [4, 2, 1, 2], series: data.of("lent", subject) },
                ]}
              />
            );
          })}
          {quotas.length > 24 && <p className="muted">{quotas.length - 24} more quotas are in the table alone.</p>}
        </div>
      )}
    </Loaded>
  );
}
