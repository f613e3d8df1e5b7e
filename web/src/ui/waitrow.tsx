// Pods that wait for one reason, as a line of a list.
import type { ReactNode } from "react";
import { clock, counted, duration } from "../lib/format";
import { stem } from "../lib/pods";
import { href } from "../lib/route";
import type { WaitGroup } from "../lib/waiting";

/** A pod that waits for longer needs attention. */
export const stuckAfter = 10 * 60_000;

const waitLink = (group: WaitGroup): string =>
  href("workloads", {
    state: "pending",
    ...(group.job
      ? { ns: group.namespace, job: group.job }
      : group.pods.length > 1 ? { ns: group.namespace, q: stem(group.pods[0]!.name) } : { pod: `${group.namespace}/${group.name}` }),
  });

export function WaitRow({ group, now }: { group: WaitGroup; now: number }): ReactNode {
  const { cause } = group;
  const age = now - group.since;
  return (
    <li>
      <div className="line-head">
        <a className="ellipsis" href={waitLink(group)}>{group.namespace}/{group.name}</a>
        {group.pods.length > 1 && <span className="tag">{counted(group.pods.length, "pod")}</span>}
        <span className="tag">{group.wanted}</span>
        <span className={age > stuckAfter ? "warn-text nowrap strong" : "muted nowrap"}>{duration(age / 1000)}</span>
      </div>
      <div className="clamp" title={cause.reason}>
        <strong>{cause.title}</strong> <span className="muted">{cause.remedy || cause.reason}</span>
      </div>
      {group.estimate !== null && (
        <div className="muted small">
          {group.estimate <= now ? "expected to start any moment" : `first start expected at ${clock(group.estimate, now, false)}`}
        </div>
      )}
    </li>
  );
}
