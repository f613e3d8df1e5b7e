// Queues of Kueue: their content, and whether they are open.
import type { ReactNode } from "react";
import type { Queue } from "../api/types";
import { count } from "../lib/format";
import { queuesCsv } from "../lib/tables";
import { CsvButton } from "../ui/save";

const most = 50;

/** Counts by Kueue, or by pods without Kueue. */
function waitingIn(queue: Queue): number {
  return queue.workloads?.pending ?? queue.pods?.waiting ?? 0;
}

export function QueueTable({ queues }: { queues: Queue[] }): ReactNode {
  if (queues.length === 0) return null;
  const sorted = [...queues].sort((a, b) => waitingIn(b) - waitingIn(a));
  const shown = sorted.slice(0, most);
  return (
    <section>
      <div className="answer-head">
        <h2>Queues</h2>
        <CsvButton small what="queues" make={() => queuesCsv(sorted)} />
      </div>
      <div className="table-scroll queues" tabIndex={0} role="region" aria-label="Queues">
        <table className="table">
          <caption className="hidden">Queues, by number of waiting jobs</caption>
          <thead>
            <tr>
              <th scope="col">Queue</th>
              <th scope="col">ClusterQueue</th>
              <th scope="col" className="number">Pending</th>
              <th scope="col" className="number">Reserving</th>
              <th scope="col" className="number">Admitted</th>
              <th scope="col">State</th>
            </tr>
          </thead>
          <tbody>
            {shown.map((queue) => (
              <tr key={queue.id}>
                <th scope="row">
                  <span className="muted">{queue.type === "ClusterQueue" ? "cluster " : `${queue.namespace}/`}</span>{queue.name}
                </th>
                <td>{queue.cluster_queue ?? ""}</td>
                <td className="number">{count(waitingIn(queue))}</td>
                <td className="number">{queue.workloads ? count(queue.workloads.reserving) : ""}</td>
                <td className="number">{count(queue.workloads?.admitted ?? queue.pods?.admitted ?? 0)}</td>
                <td>{queue.active === false ? <span className="clamp" title={queue.why}>closed: {queue.why}</span> : "open"}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}
