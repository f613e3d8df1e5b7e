// Every GPU with its slots, now or at any moment of the past.
import { useMemo, type ReactNode } from "react";
import type { Gpus, Node } from "../api/types";
import { useAt, useCluster, useGpus, useNow, useRange } from "../lib/data";
import { count, percent } from "../lib/format";
import { markTeams, type TeamMark } from "../lib/palette";
import { href, setParams, useRoute } from "../lib/route";
import { GpuCanvas } from "../map/canvas";
import { countSlots, shortProduct, type Slots } from "../map/cells";
import type { By } from "../map/draw";
import { cursorOf, filterNodes } from "../map/find";
import type { Cursor, Zoom } from "../map/geometry";
import { Legend } from "../map/legend";
import { GpuTable } from "../map/table";
import { usePast, useRested } from "../map/replay";
import { TimeBar } from "../map/timebar";
import { GpuPanel } from "../panels";
import { Choice, Search, Segments } from "../ui/controls";
import { staleAfter } from "../ui/shell";
import { Empty, Loaded } from "../ui/states";

const bys = [
  { id: "team", label: "Team" },
  { id: "state", label: "State" },
  { id: "utilization", label: "Utilisation" },
] as const;

const zooms = [
  { id: "s", label: "S" },
  { id: "m", label: "M" },
  { id: "l", label: "L" },
] as const;

export default function MapPage(): ReactNode {
  const { params } = useRoute();
  const at = useAt();
  const range = useRange();
  const { past, replay } = usePast(range, at, params.ns ?? "");
  // While the slider moves, the map is drawn from loaded data; at rest, readings are added.
  const rested = useRested(at, 250);
  const asked = useGpus(replay ? rested : at, params.ns ?? "");
  const measured = at === undefined || (rested === at && !asked.loading && asked.data !== undefined);
  const gpus = !replay || measured ? asked : { ...asked, data: replay.frame(at), error: undefined, loading: false };
  return (
    <div className="map-page">
      <Loaded resource={gpus} what="the map of all GPUs" rows={8}>
        {(data) =>
          data.nodes.length === 0 && at === undefined ? (
            <Empty title="No GPU reports yet">
              <p>Nodes appear as soon as their agent sends its first report.</p>
            </Empty>
          ) : (
            <Body gpus={data} at={at} />
          )
        }
      </Loaded>
      {(gpus.data || at !== undefined) && (
        <TimeBar range={range} at={at} past={past} local={replay !== undefined} busy={gpus.loading} />
      )}
    </div>
  );
}

function Body({ gpus, at }: { gpus: Gpus; at: number | undefined }): ReactNode {
  const { params } = useRoute();
  const { live } = useCluster();
  useNow(10_000); // fades outdated data
  const by = bys.find((each) => each.id === params.by)?.id ?? "team";
  const zoom = zooms.find((each) => each.id === params.zoom)?.id ?? "m";
  const selected = cursorOf(params.sel);
  const products = useMemo(
    () => [...new Set(gpus.nodes.flatMap((node) => node.gpus.map((gpu) => gpu.product)))].sort(),
    [gpus.nodes],
  );
  const nodes = useMemo(
    () => filterNodes(gpus.nodes, params.q ?? "", params.product ?? ""),
    [gpus.nodes, params.q, params.product],
  );
  const slots = useMemo(() => countSlots(nodes), [nodes]);
  const teams = useMemo(() => markTeams(countSlots(gpus.nodes).byTeam.keys()), [gpus.nodes]);
  const node = gpus.nodes.find((each) => each.node === selected?.node);
  const gpu = node?.gpus.find((each) => each.index === selected?.index);
  const select = (cursor: Cursor | undefined): void =>
    setParams({ sel: cursor ? `${cursor.node}/${cursor.index}` : "", pod: "" });
  const table = params.view === "table";
  return (
    <>
      <Toolbar by={by} zoom={zoom} products={products} table={table} />
      <Legend by={by} teams={teams} slots={slots} team={params.team ?? ""} />
      <div className="map-body">
        {nodes.length === 0 ? (
          <Empty title="No node matches">
            <p>
              Nothing is called <q>{params.q}</q>. <a href={href("map", { by })}>Show all nodes</a>
            </p>
          </Empty>
        ) : table ? (
          <GpuTable nodes={nodes} />
        ) : (
          <GpuCanvas
            nodes={nodes} by={by} zoom={zoom} teams={teams} team={params.team ?? ""} pod={params.pod ?? ""}
            selected={selected} staleBefore={(at ?? live.now()) - staleAfter} onSelect={select}
          />
        )}
        {selected && (
          <GpuPanel
            key={params.sel} node={node} gpu={gpu} place={params.sel ?? ""} past={at !== undefined}
            onClose={() => select(undefined)}
          />
        )}
      </div>
      <Summary nodes={nodes} slots={slots} teams={teams} />
    </>
  );
}

function Toolbar({ by, zoom, products, table }: { by: By; zoom: Zoom; products: string[]; table: boolean }): ReactNode {
  const { params } = useRoute();
  return (
    <div className="toolbar">
      <Search
        label="Find nodes and pods on the map" placeholder="Node or pod" value={params.q ?? ""}
        onChange={(q) => setParams({ q })}
      />
      {products.length > 1 && (
        <Choice
          label="Model" value={params.product ?? ""} onChange={(product) => setParams({ product })}
          options={[{ id: "", label: "all models" }, ...products.map((id) => ({ id, label: shortProduct(id) }))]}
        />
      )}
      <Segments label="Colour by" value={by} options={bys} onChange={(id) => setParams({ by: id, team: "" })} />
      {!table && <Segments label="Size" value={zoom} options={zooms} onChange={(id) => setParams({ zoom: id })} />}
      <Segments
        label="Show as" value={table ? "table" : "map"} onChange={(id) => setParams({ view: id === "map" ? "" : id })}
        options={[{ id: "map", label: "Map" }, { id: "table", label: "Table" }]}
      />
    </div>
  );
}

/** The map in a sentence, for screen readers. */
function Summary({ nodes, slots, teams }: { nodes: Node[]; slots: Slots; teams: Map<string, TeamMark> }): ReactNode {
  const share = (value: number): string => percent(slots.total > 0 ? value / slots.total : 0);
  return (
    <p className="hidden">
      {count(slots.total)} GPUs on {count(nodes.length)} nodes: {share(slots.byKind.busy)} in use,{" "}
      {share(slots.byKind.idle)} held and idle, {share(slots.byKind.free + slots.byKind.unpartitioned)} free;{" "}
      {[...teams.keys()].map((team) => `${team} ${share(slots.byTeam.get(team) ?? 0)}`).join(", ")}.
    </p>
  );
}
