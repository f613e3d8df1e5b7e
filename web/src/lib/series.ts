// Series of several metrics over the time range of the address.
import { api } from "../api/client";
import type { Series } from "../api/types";
import { useCluster, useResource, type Resource } from "./data";
import type { TimeRange } from "./range";

const points = 360;

/** By metric and subject: series("allocated", "cluster"). */
export interface SeriesSet {
  of: (metric: string, subject?: string) => Series | undefined;
  unit: (metric: string) => string;
}

export function subjectText(subject: string | Record<string, string>): string {
  if (typeof subject === "string") return subject;
  return Object.values(subject).join("/");
}

/** Requests several subjects together; answers keep their order. An empty list of either requests nothing. */
export function useSeries(metrics: readonly string[], subjects: readonly string[], range: TimeRange): Resource<SeriesSet> {
  const { name } = useCluster();
  const key =
    metrics.length > 0 && subjects.length > 0
      ? [name, range.from, range.to, ...metrics, "of", ...subjects].join("|")
      : "";
  return useResource(key, async (signal) => {
    const query = { subject: subjects, from: Math.round(range.from), to: Math.round(range.to), points };
    const answers = await Promise.all(metrics.map((metric) => api.series(name, { metric, ...query }, signal)));
    return {
      of: (metric, subject = subjects[0] ?? "") => {
        const answer = answers[metrics.indexOf(metric)];
        const bySubject = answer?.series.find((each) => subjectText(each.subject) === subject);
        return bySubject ?? answer?.series[subjects.indexOf(subject)];
      },
      unit: (metric) => answers[metrics.indexOf(metric)]?.unit ?? "",
    };
  });
}
