// Node pools: number of nodes, nodes being added and removed, cost, and state.
import type { ReactNode } from "react";
import { api } from "../api/client";
import type { Pool } from "../api/types";
import { useAt, useCluster, useEvent, useNow, useResource } from "../lib/data";
import { compareNames } from "../lib/names";
import { count, counted } from "../lib/format";
import { poolsCsv } from "../lib/tables";
import { barOf, costOf, gpuOf, modeOf, price, stateOf, sumOf } from "../lib/pools";
import { CsvButton } from "../ui/save";
import { Empty, Example, Loaded } from "../ui/states";

export default function PoolsPage(): ReactNode {
  const { name } = useCluster();
  const at = useAt();
  const pools = useResource(`pools|${name}|${at ?? ""}`, (signal) => api.pools(name, at, signal));
  useEvent("pools", (data) => {
    const next = data as { pools?: Pool[] };
    if (at === undefined && Array.isArray(next.pools)) pools.set(() => ({ pools: next.pools ?? [] }));
  });
  useEvent("reset", pools.reload);
  return (
    <Loaded resource={pools} what="node pools" rows={6}>
      {(data) =>
        data.pools.length === 0 ? (
          <Empty title="There are no node pools">
            <p>
              A NodePool describes its nodes: their GPUs, their minimum and maximum number, their price. The autoscaler adds
              nodes to it if no repartitioning places pending pods. An example for <code>kubectl apply -f</code>, whose nodes a
              MachineDeployment of Cluster API provides:
            </p>
            <Example text={example} />
          </Empty>
        ) : (
          <Pools pools={[...data.pools].sort((a, b) => compareNames(a.name, b.name))} />
        )
      }
    </Loaded>
  );
}

const example = `apiVersion: nos.nebuly.com/v1alpha1
kind: NodePool
metadata: {name: a100}
spec:
  gpu: {model: A100-80GB, count: 8, partitioning: mig}
  cpu: 90
  memory: 900Gi
  min: 0
  max: 20
  price: "12.25"
  nodeSelector: {node.example/pool: a100}
  scaleTargetRef:
    apiVersion: cluster.x-k8s.io/v1beta1
    kind: MachineDeployment
    namespace: infra
    name: a100
  deleteAnnotation: cluster.x-k8s.io/delete-machine`;

function Pools({ pools }: { pools: Pool[] }): ReactNode {
  return (
    <>
      <div className="toolbar">
        <span className="muted">{counted(pools.length, "pool")}</span>
        <CsvButton what="pools" make={() => poolsCsv(pools)} />
      </div>
      <Table pools={pools} />
    </>
  );
}

function Table({ pools }: { pools: Pool[] }): ReactNode {
  const now = useNow(10_000);
  const moment = useAt() ?? now;
  const all = sumOf(pools);
  return (
    <div className="panel table-scroll" tabIndex={0} role="region" aria-label="Node pools">
      <table className="table pools">
        <caption className="hidden">Node pools by name</caption>
        <thead>
          <tr>
            <th scope="col">Pool</th>
            <th scope="col">GPUs of a node</th>
            <th scope="col">Mode</th>
            <th scope="col" className="pool-bar-cell">Nodes of max</th>
            <th scope="col" className="number">Nodes</th>
            <th scope="col" className="number">Adding</th>
            <th scope="col" className="number">Removing</th>
            <th scope="col" className="number">Price per hour</th>
            <th scope="col" className="number">Total per hour</th>
            <th scope="col">State</th>
          </tr>
        </thead>
        <tbody>
          {pools.map((pool) => (
            <Row key={pool.id} pool={pool} now={moment} />
          ))}
        </tbody>
        {pools.length > 1 && (
          <tfoot>
            <tr>
              <th scope="row" colSpan={4}>All pools</th>
              <td className="number strong">{count(all.nodes)}</td>
              <td className="number">{count(all.coming)}</td>
              <td className="number">{count(all.going)}</td>
              <td />
              <td className="number strong">{price(all.cost)}</td>
              <td />
            </tr>
          </tfoot>
        )}
      </table>
    </div>
  );
}

function Row({ pool, now }: { pool: Pool; now: number }): ReactNode {
  const { words, tone } = stateOf(pool, now);
  return (
    <tr>
      <th scope="row">{pool.name}</th>
      <td>{gpuOf(pool)}</td>
      <td>{modeOf(pool)}</td>
      <td className="pool-bar-cell"><PoolBar pool={pool} /></td>
      <td className="number strong">
        {count(pool.nodes ?? 0)} <span className="muted">({count(pool.min ?? 0)} to {count(pool.max)})</span>
      </td>
      <td className="number" data-tone={pool.coming ? "warn" : undefined}>{count(pool.coming ?? 0)}</td>
      <td className="number">{count(pool.going ?? 0)}</td>
      <td className="number">{price(pool.price)}</td>
      <td className="number">{price(costOf(pool))}</td>
      <td>
        <span className={tone === "muted" ? "muted" : `${tone}-text`}>{words}</span>
        {pool.why && <span className="clamp muted small" title={pool.why}>{pool.why}</span>}
      </td>
    </tr>
  );
}

/** Remaining nodes, then those being removed and added; a mark at the minimum. */
function PoolBar({ pool }: { pool: Pool }): ReactNode {
  const bar = barOf(pool);
  const share = (value: number): string => `${value * 100}%`;
  const text = `${pool.nodes ?? 0} nodes, ${pool.going ?? 0} being removed, ${pool.coming ?? 0} being added, of at most ${pool.max ?? 0}`;
  return (
    <span className="quota-bar" role="img" aria-label={text} title={text}>
      <span className="quota-own" style={{ width: share(bar.nodes) }} />
      <span className="quota-borrowed" style={{ left: share(bar.nodes), width: share(bar.going) }} />
      <span className="pool-coming" style={{ left: share(bar.nodes + bar.going), width: share(bar.coming) }} />
      {bar.min > 0 && <span className="quota-max" style={{ left: share(bar.min) }} />}
    </span>
  );
}
