// A pod's way as a bar of its phases and a list of steps with the time between them.
import type { ReactNode } from "react";
import { api } from "../api/client";
import type { Decision, PodDetail } from "../api/types";
import { useCluster, useResource } from "../lib/data";
import { clock, count, duration } from "../lib/format";
import { href } from "../lib/route";
import { phasesOf, timelineOf, type Phase } from "../lib/timeline";

/** Decisions around its scheduling and its end: others cannot be about it. */
const [before, after] = [60_000, 120_000];

function useDecisions(pod: PodDetail): Decision[] {
  const { name } = useCluster();
  const wanted = pod.decisions.slice(-50);
  const key = wanted.length > 0 ? `decisions-of|${name}|${pod.uid}|${wanted.join(" ")}|${pod.scheduled > 0}|${pod.finished > 0}` : "";
  const found = useResource(key, async (signal) => {
    const spans = [{ from: pod.created - before, ...(pod.scheduled ? { to: pod.scheduled + after } : {}) }];
    if (pod.finished) spans.push({ from: pod.finished - after, to: pod.finished + after });
    const answers = await Promise.all(spans.map((span) => api.decisions(name, { ...span, limit: 1000 }, signal)));
    const known = new Map(answers.flatMap((each) => each.decisions).map((each) => [each.id, each]));
    return wanted.flatMap((id) => known.get(id) ?? []);
  });
  return found.data ?? [];
}

const width = ({ ms }: Phase, all: number): number => Math.sqrt(Math.max(ms, all / 400));

export function Timeline({ pod, now }: { pod: PodDetail; now: number }): ReactNode {
  const decisions = useDecisions(pod);
  const steps = timelineOf(pod, decisions);
  const phases = phasesOf(pod, decisions, now);
  const all = phases.reduce((sum, each) => sum + each.ms, 0);
  const shown = new Set(steps.map((each) => each.decision));
  const others = pod.decisions.filter((id) => !shown.has(id)).slice(-12);
  return (
    <section aria-label="Timeline">
      <h3>Timeline</h3>
      <div className="phase-bar" aria-hidden="true">
        {phases.map((phase) => (
          <span key={phase.id} className="phase" data-phase={phase.id} style={{ flexGrow: width(phase, all) }} title={`${phase.label} ${duration(phase.ms / 1000)}`} />
        ))}
      </div>
      <ul className="phase-legend">
        {phases.map((phase) => (
          <li key={phase.id}>
            <span className="swatch phase" data-phase={phase.id} aria-hidden="true" />
            {phase.label} <strong>{duration(phase.ms / 1000)}</strong>{phase.open && " so far"}
          </li>
        ))}
      </ul>
      <ol className="timeline">
        {steps.slice(-60).map((each, place, list) => {
          const next = list[place + 1]?.at ?? (pod.finished ? undefined : now);
          const gap = next === undefined ? 0 : next - each.at;
          return (
            <li key={`${each.kind}/${each.at}/${each.title}/${place}`} data-kind={each.kind} data-tone={each.warning ? "warn" : undefined}>
              <time dateTime={new Date(each.at).toISOString()} title={clock(each.at, now)}>{clock(each.at, now)}</time>
              <span className="timeline-text">
                <strong>{each.decision ? <a href={href("decisions", { id: each.decision })}>{each.title}</a> : each.title}</strong>{" "}
                {each.detail}
                {each.count > 1 && <span className="muted"> {count(each.count)} times, here the latest</span>}
                {gap >= 1000 && <span className="timeline-gap muted">{duration(gap / 1000)}{place === list.length - 1 ? " so far" : ""}</span>}
              </span>
            </li>
          );
        })}
      </ol>
      {others.length > 0 && (
        <p className="small">
          Other decisions:{" "}
          {others.map((id) => (
            <a key={id} className="tag" href={href("decisions", { id })}>{id}</a>
          ))}
        </p>
      )}
    </section>
  );
}
