// Every GPU with its slots, now or at any moment of the past.
import { useMemo, useRef, useState, type ReactNode } from "react";
import { Button } from "react-aria-components";
import type { Gpus, Node } from "../api/types";
import { useAt, useCluster, useGpus, useNow, useRange } from "../lib/data";
import { clock, count, counted, date, percent } from "../lib/format";
import { markTeams, type TeamMark } from "../lib/palette";
import { href, setParams, useRoute } from "../lib/route";
import { gpusCsv } from "../lib/tables";
import { GpuCanvas } from "../map/canvas";
import { cellsOf, countSlots, shortProduct, type Slots } from "../map/cells";
import type { By } from "../map/draw";
import { cursorOf, filterNodes, findOnMap, isMeant, ofProduct, type Found } from "../map/find";
import { foldedNodes, type Cursor, type Zoom } from "../map/geometry";
import { Legend } from "../map/legend";
import { GpuTable } from "../map/table";
import { usePast, useRested } from "../map/replay";
import { TimeBar } from "../map/timebar";
import { GpuPanel } from "../panels";
import { CsvButton, PictureButton } from "../ui/save";
import { Choice, Search, Segments } from "../ui/controls";
import { staleAfter } from "../ui/shell";
import { Empty, Loaded } from "../ui/states";

const bys = [
  { id: "utilization", label: "Utilisation" },
  { id: "state", label: "State" },
  { id: "team", label: "Team" },
] as const;

const zooms = [
  { id: "fit", label: "Fit" },
  { id: "s", label: "S" },
  { id: "m", label: "M" },
  { id: "l", label: "L" },
] as const;

export default function MapPage(): ReactNode {
  const { params } = useRoute();
  const at = useAt();
  const range = useRange();
  const [wanted, setWanted] = useState(false);
  const { past, replay } = usePast(range, at, params.ns ?? "", wanted);
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
        <TimeBar range={range} at={at} past={past} local={replay !== undefined} busy={gpus.loading} onReach={() => setWanted(true)} />
      )}
    </div>
  );
}

function Body({ gpus, at }: { gpus: Gpus; at: number | undefined }): ReactNode {
  const { params } = useRoute();
  const { live, name: cluster } = useCluster();
  const shot = useRef<(title: string) => HTMLCanvasElement | undefined>(undefined);
  useNow(10_000); // fades outdated data
  const zoom = zooms.find((each) => each.id === params.zoom)?.id ?? "fit";
  const query = params.q ?? "";
  const text = query.trim().toLowerCase();
  const selected = cursorOf(params.sel);
  const products = useMemo(
    () => [...new Set(gpus.nodes.flatMap((node) => node.gpus.map((gpu) => gpu.product)))].sort(),
    [gpus.nodes],
  );
  const table = params.view === "table";
  // The table lists what the search means; the map dims the rest, so that it keeps its shape.
  const nodes = useMemo(
    () => (table ? filterNodes(gpus.nodes, query, params.product ?? "") : ofProduct(gpus.nodes, params.product ?? "")),
    [table, gpus.nodes, query, params.product],
  );
  const folded = useMemo(
    () => foldedNodes(nodes, (node) => (text !== "" && isMeant(node.node, noCell, text)) || node.node === cursorOf(params.sel)?.node),
    [nodes, text, params.sel],
  );
  const unfolded = params.empty === "shown";
  const found = useMemo(() => findOnMap(nodes, query), [nodes, query]);
  const slots = useMemo(() => countSlots(nodes), [nodes]);
  const teams = useMemo(() => markTeams(countSlots(gpus.nodes).byTeam.keys()), [gpus.nodes]);
  const by = bys.find((each) => each.id === params.by)?.id ?? (isMeasured(gpus.nodes) ? "utilization" : "team");
  const node = gpus.nodes.find((each) => each.node === selected?.node);
  const gpu = node?.gpus.find((each) => each.index === selected?.index);
  const select = (cursor: Cursor | undefined, pod = ""): void =>
    setParams({ sel: cursor ? `${cursor.node}/${cursor.index}` : "", pod });
  const moment = at ?? live.now();
  const picture = (): HTMLCanvasElement | undefined =>
    shot.current?.(`${cluster}, ${date(moment)} ${clock(moment, moment, false)}: ${counted(slots.total, "GPU")} by ${by === "utilization" ? "utilisation" : by}`);
  return (
    <>
      <Toolbar by={by} zoom={zoom} products={products} table={table} found={found} folded={folded.size} unfolded={unfolded} nodes={nodes} picture={picture} />
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
            nodes={nodes} folded={unfolded ? nothingFolded : folded} text={text} first={found.first} by={by} zoom={zoom} teams={teams}
            team={params.team ?? ""} pod={params.pod ?? ""} selected={selected}
            staleBefore={(at ?? live.now()) - staleAfter * Math.max(1, live.speed())} onSelect={select}
            onUnfold={() => setParams({ empty: "shown" })} shot={shot}
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

const noCell = { profile: "", holders: [] };
const nothingFolded: ReadonlySet<Node> = new Set();

/** True if any piece has a reading: else colours of utilisation say nothing. */
const isMeasured = (nodes: Node[]): boolean =>
  nodes.some((node) => node.gpus.some((gpu) => cellsOf(gpu).some((cell) => cell.holders.length > 0 && cell.utilization !== null)));

interface ToolbarProps {
  by: By;
  zoom: Zoom;
  products: string[];
  table: boolean;
  found: Found;
  folded: number;
  unfolded: boolean;
  nodes: Node[];
  picture: () => HTMLCanvasElement | undefined;
}

function Toolbar({ by, zoom, products, table, found, folded, unfolded, nodes, picture }: ToolbarProps): ReactNode {
  const { params } = useRoute();
  return (
    <div className="toolbar">
      <Search
        label="Find nodes and pods on the map" placeholder="Node, pod or profile" value={params.q ?? ""}
        onChange={(q) => setParams({ q })}
      />
      {params.q && !table && (
        <span className={found.nodes > 0 ? "muted nowrap" : "warn-text nowrap"} role="status">
          {found.nodes === 0 ? "nothing matches" : `${found.pods > 0 ? `${counted(found.pods, "pod")} on ` : ""}${counted(found.nodes, "node")}`}
        </span>
      )}
      {products.length > 1 && (
        <Choice
          label="Model" value={params.product ?? ""} onChange={(product) => setParams({ product })}
          options={[{ id: "", label: "all models" }, ...products.map((id) => ({ id, label: shortProduct(id) }))]}
        />
      )}
      <Segments label="Colour by" value={by} options={bys} onChange={(id) => setParams({ by: id, team: "" })} />
      {!table && <Segments label="Size" value={zoom} options={zooms} onChange={(id) => setParams({ zoom: id === "fit" ? "" : id })} />}
      <Segments
        label="Show as" value={table ? "table" : "map"} onChange={(id) => setParams({ view: id === "map" ? "" : id })}
        options={[{ id: "map", label: "Map" }, { id: "table", label: "Table" }]}
      />
      {table ? <CsvButton what="GPUs" make={() => gpusCsv(nodes)} /> : <PictureButton what="map" picture={picture} />}
      {!table && folded > 0 && (
        <Button className="button small" onPress={() => setParams({ empty: unfolded ? "" : "shown" })}>
          {unfolded ? "Fold" : "Show"} {counted(folded, "empty node")}
        </Button>
      )}
    </div>
  );
}

/** The map in a sentence, for screen readers. */
function Summary({ nodes, slots, teams }: { nodes: Node[]; slots: Slots; teams: Map<string, TeamMark> }): ReactNode {
  const share = (value: number): string => percent(slots.total > 0 ? value / slots.total : 0);
  return (
    <p className="hidden">
      {count(slots.total)} GPUs on {count(nodes.length)} nodes: {share(slots.byKind.busy)} in use,{" "}
      {share(slots.byKind.idle)} allocated and idle, {share(slots.byKind.free + slots.byKind.unpartitioned)} free;{" "}
      {[...teams.keys()].map((team) => `${team} ${share(slots.byTeam.get(team) ?? 0)}`).join(", ")}.
    </p>
  );
}
