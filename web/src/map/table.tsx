// The map as a table: the same facts without graphics, for example for screen readers.
import { useState, type ReactNode } from "react";
import { Button } from "react-aria-components";
import type { Node } from "../api/types";
import { counted, percent } from "../lib/format";
import { href, setParams, useRoute } from "../lib/route";
import { cellsOf, holderName, pieceName, shortProduct, modeText } from "./cells";

const atOnce = 80;

export function GpuTable({ nodes }: { nodes: Node[] }): ReactNode {
  const { params } = useRoute();
  const [shown, setShown] = useState(atOnce);
  const rows = nodes.flatMap((node) => node.gpus.map((gpu) => ({ node, gpu })));
  return (
    <div className="table-scroll" tabIndex={0} role="region" aria-label="GPUs">
      <table className="table gpus">
        <caption className="hidden">{counted(rows.length, "GPU")}, each with its slices and their pods</caption>
        <thead>
          <tr>
            <th scope="col">Node</th>
            <th scope="col">GPU</th>
            <th scope="col">Model</th>
            <th scope="col">Mode</th>
            <th scope="col" className="number">Allocated</th>
            <th scope="col" className="number">Busy</th>
            <th scope="col">Slices</th>
          </tr>
        </thead>
        <tbody>
          {rows.slice(0, shown).map(({ node, gpu }) => {
            const cells = cellsOf(gpu);
            const held = cells.filter((each) => each.holders.length > 0).reduce((sum, each) => sum + each.to - each.from, 0);
            const place = `${node.node}/${gpu.index}`;
            const busy = gpu.metrics?.utilization;
            return (
              <tr key={gpu.gpu || place} aria-selected={params.sel === place}>
                <th scope="row">{node.node}{node.ready ? "" : " (not ready)"}</th>
                <td>
                  <button type="button" className="link" onClick={() => setParams({ sel: place })}>GPU {gpu.index}</button>
                </td>
                <td>{shortProduct(gpu.product)}</td>
                <td>{modeText(gpu)}</td>
                <td className="number">{percent(held)}</td>
                <td className="number">{busy === undefined ? "not measured" : percent(busy)}</td>
                <td className="wrap">
                  {gpu.health && <span className="bad-text">{gpu.health} </span>}
                  {cells.filter((each) => each.kind !== "unpartitioned").map((each, index) => (
                    <span key={index} className="tag">
                      {pieceName(gpu, each)}{" "}
                      {each.holders.length === 0 ? "free" : each.holders.map((holder) => (
                        <a key={holderName(holder)} href={href("workloads", { pod: holderName(holder) })}>{holderName(holder)}</a>
                      ))}
                    </span>
                  ))}
                </td>
              </tr>
            );
          })}
        </tbody>
      </table>
      {shown < rows.length && (
        <Button className="button more" onPress={() => setShown(shown + 4 * atOnce)}>
          Show more ({rows.length - shown} left)
        </Button>
      )}
    </div>
  );
}
