// For a screen on the wall: one large answer after the other, without controls around it.
import { useEffect, useMemo, useRef, useState, type ReactNode } from "react";
import { Button } from "react-aria-components";
import type { Cost, Pod, Stories } from "../api/types";
import { partsOf } from "../lib/capacity";
import { centParts, cents, hours, micros, shareOf } from "../lib/costs";
import { loadPending, useBeat, useCluster, useGpus, useHourCost, useNow, useOverview, useResource, useStories, type Resource } from "../lib/data";
import { clock, count, counted, duration, percent } from "../lib/format";
import { markTeams } from "../lib/palette";
import { setParams, useRoute } from "../lib/route";
import { keepAwake } from "../lib/wake";
import { groupWaiting } from "../lib/waiting";
import { leaveWall } from "../lib/wall";
import { countSlots } from "../map/cells";
import { Legend } from "../map/legend";
import { MiniMap } from "../map/minimap";
import { PartsBar, Swatch } from "../ui/costparts";
import { Icon } from "../ui/icons";
import { Freshness, staleAfter } from "../ui/shell";
import { Loaded } from "../ui/states";
import { StoryText } from "../ui/story";
import { stuckAfter } from "../ui/waitrow";

const slides = [
  { id: "use", title: "Use of GPUs" },
  { id: "map", title: "GPU map" },
  { id: "waiting", title: "Waiting, longest first" },
  { id: "hour", title: "The last hour" },
  { id: "cost", title: "Cost of the last hour" }, // with prices
] as const;

const hour = 3_600_000;
/** Real milliseconds of a slide. */
const lasts = 20_000;

export default function WallPage(): ReactNode {
  const { params } = useRoute();
  const { name } = useCluster();
  const now = useNow(1000);
  const costs = useHourCost();
  const [paused, setPaused] = useState(false);
  const turns = slides.filter((each) => each.id !== "cost" || costs.data);
  const at = Math.max(0, turns.findIndex((each) => each.id === params.slide));
  const slide = turns[at]!;
  const go = (by: number): void => setParams({ slide: turns[(at + by + turns.length) % turns.length]!.id });
  const latest = useRef(go);
  latest.current = go;
  useEffect(() => {
    if (paused) return;
    const timer = setTimeout(() => latest.current(1), lasts);
    return () => clearTimeout(timer);
  }, [paused, at]);
  useEffect(keepAwake, []);
  useEffect(() => {
    document.title = `${slide.title} · ${name} · nos`;
  }, [slide, name]);
  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      // The button that has the focus has its own use of the space bar.
      const keys: Record<string, () => void> = {
        ArrowRight: () => latest.current(1), ArrowLeft: () => latest.current(-1), Escape: leaveWall, w: leaveWall,
        ...(event.target instanceof HTMLButtonElement ? {} : { " ": () => setPaused((was) => !was) }),
      };
      const act = keys[event.key];
      if (!act) return;
      event.preventDefault();
      act();
    };
    // Leaving the full screen by Esc sends no key to the page.
    const onScreen = (): void => {
      if (!document.fullscreenElement) leaveWall();
    };
    document.addEventListener("keydown", onKey);
    document.addEventListener("fullscreenchange", onScreen);
    return () => {
      document.removeEventListener("keydown", onKey);
      document.removeEventListener("fullscreenchange", onScreen);
    };
  }, []);

  const beat = useBeat(10_000);
  const gpus = useGpus(undefined, "");
  const pending = useResource(`pending|${name}|${beat}`, (signal) => loadPending(name, signal));
  const stories = useStories();
  return (
    <div className="wall">
      <header className="wall-head">
        <h1>{slide.title}</h1>
        <span className="wall-cluster">{name}</span>
        <Freshness />
        <time className="wall-clock" dateTime={new Date(now).toISOString()}>{clock(now, now, false)}</time>
      </header>
      <main className="wall-body" data-slide={slide.id} tabIndex={0} aria-label={slide.title}>
        {slide.id === "use" && <Use />}
        {slide.id === "map" && <Map gpus={gpus} />}
        {slide.id === "waiting" && <Waiting pending={pending} now={now} />}
        {slide.id === "hour" && <Hour stories={stories} now={now} />}
        {slide.id === "cost" && <Costs costs={costs} />}
      </main>
      <footer className="wall-foot">
        <ol className="wall-dots" aria-label="Pages of the wall">
          {turns.map((each, place) => (
            <li key={each.id}>
              <button type="button" aria-label={each.title} aria-current={place === at ? "page" : undefined} onClick={() => setParams({ slide: each.id })} />
            </li>
          ))}
        </ol>
        <Button className="button small" onPress={() => setPaused(!paused)}>
          <Icon name={paused ? "play" : "pause"} /> {paused ? "Go on" : "Stay here"}
        </Button>
        <Button className="button small" onPress={leaveWall}>Leave</Button>
        <span className="muted small">Space stays, arrows turn, Esc leaves</span>
      </footer>
    </div>
  );
}

function Use(): ReactNode {
  const overview = useOverview();
  return (
    <Loaded resource={overview} what="the use of the cluster" rows={3}>
      {(data) => {
        const parts = partsOf(data);
        const gpus = (share: number | null): string => counted(Math.round((share ?? 0) * data.gpus), "GPU");
        const figures: [string, string, string, string?][] = [
          ["Allocated", percent(data.allocated), `${gpus(data.allocated)} of ${count(data.gpus)}`],
          ["Computing", data.used === null ? "–" : percent(data.used), data.used === null ? "not measured" : `${gpus(data.used)} of work`],
          ["Idle", data.idle === null ? "–" : percent(data.idle), data.idle === null ? "not measured" : `${gpus(data.idle)} below 5 % busy`, (data.idle ?? 0) > 0.02 ? "warn" : ""],
          ["Empty", data.empty_gpus === undefined ? percent(data.free) : count(data.empty_gpus), data.empty_gpus === undefined ? "free" : "GPUs that no pod uses"],
          ["Running", count(data.pods.running ?? 0), "pods"],
          ["Pending", count(data.pods.pending ?? 0), `time to slice ${duration(data.seconds_to_slice)}`],
        ];
        return (
          <>
            <dl className="wall-figures">
              {figures.map(([title, value, note, tone]) => (
                <div key={title} className="wall-figure" data-tone={tone}>
                  <dt>{title}</dt>
                  <dd className="wall-value">{value}</dd>
                  <dd className="muted">{note}</dd>
                </div>
              ))}
            </dl>
            <div className="capacity-bar" aria-hidden="true">
              {parts.map((part) => (
                <span key={part.id} className="capacity-part" data-part={part.id} style={{ flexGrow: part.share }} />
              ))}
            </div>
            <ul className="capacity-legend">
              {parts.map((part) => (
                <li key={part.id}>
                  <span className="swatch" data-part={part.id} aria-hidden="true" />
                  <span>{part.label}</span>
                  <strong>{percent(part.share)}</strong>
                </li>
              ))}
            </ul>
          </>
        );
      }}
    </Loaded>
  );
}

function Map({ gpus }: { gpus: ReturnType<typeof useGpus> }): ReactNode {
  const { live } = useCluster();
  return (
    <Loaded resource={gpus} what="the map of all GPUs" rows={6}>
      {(data) => {
        const slots = countSlots(data.nodes);
        return (
          <>
            <Legend by="state" teams={markTeams(slots.byTeam.keys())} slots={slots} team="" />
            <MiniMap nodes={data.nodes} staleBefore={live.now() - staleAfter * Math.max(1, live.speed())} />
            <p className="hidden">{counted(slots.total, "GPU")} on {counted(data.nodes.length, "node")}</p>
          </>
        );
      }}
    </Loaded>
  );
}

const rows = 9;

function Waiting({ pending, now }: { pending: Resource<Pod[]>; now: number }): ReactNode {
  const groups = useMemo(() => groupWaiting(pending.data ?? []), [pending.data]);
  return (
    <Loaded resource={pending} what="what waits" rows={6}>
      {(pods) =>
        groups.length === 0 ? <p className="wall-empty good-text">No pod waits for a GPU.</p> : (
          <>
            <ul className="wall-rows">
              {groups.slice(0, rows).map((group) => (
                <li key={group.key}>
                  <span className={now - group.since > stuckAfter ? "wall-time warn-text" : "wall-time"}>{duration((now - group.since) / 1000)}</span>
                  <span className="wall-words">
                    <strong>{group.namespace}/{group.name}</strong> {group.pods.length > 1 && <span className="muted">{counted(group.pods.length, "pod")} </span>}
                    {group.wanted}
                    <span className="wall-note muted">{group.cause.title}: {group.cause.remedy || group.cause.reason}</span>
                  </span>
                  <span className="nowrap muted">
                    {group.estimate === null ? "start unknown" : group.estimate <= now ? "any moment" : `in ${duration((group.estimate - now) / 1000)}`}
                  </span>
                </li>
              ))}
            </ul>
            <p className="muted">{counted(pods.length, "pod")} in {counted(groups.length, "group")}</p>
          </>
        )
      }
    </Loaded>
  );
}

function Hour({ stories, now }: { stories: Resource<Stories>; now: number }): ReactNode {
  const shown = (stories.data?.stories ?? []).filter((each) => each.at > now - hour).slice(0, rows);
  return (
    <Loaded resource={stories} what="decisions" rows={6}>
      {() =>
        shown.length === 0 ? <p className="wall-empty muted">No GPU was repartitioned, no pod was evicted, no pool was scaled.</p> : (
          <ul className="wall-rows">
            {shown.map((story) => (
              <li key={story.id}>
                <span className="wall-time">{clock(story.at, now, false)}</span>
                <span className="wall-words"><StoryText story={story} /></span>
                <span className={story.outcome === "failed" ? "bad-text" : "muted"}>{story.outcome === "failed" ? "failed" : story.type}</span>
              </li>
            ))}
          </ul>
        )
      }
    </Loaded>
  );
}

/** The parts add up to the whole. */
function Costs({ costs }: { costs: Resource<Cost> }): ReactNode {
  return (
    <Loaded resource={costs} what="costs" rows={3}>
      {({ total, currency }) => {
        const parts = centParts(total);
        const cost = micros(total.cost);
        const unpriced = micros(total.unpriced_gpu_hours) === 0 ? "" : `, ${hours(total.unpriced_gpu_hours)} without a price`;
        return (
          <>
            <dl className="wall-figures">
              <div className="wall-figure">
                <dt>All GPUs</dt>
                <dd className="wall-value">{cents(cost)}</dd>
                <dd className="muted">{currency} for {hours(total.gpu_hours)} GPU hours{unpriced}</dd>
              </div>
              {parts.map((part) => (
                <div key={part.id} className="wall-figure">
                  <dt><Swatch part={part} /> {part.label}</dt>
                  <dd className="wall-value">{cents(part.cost)}</dd>
                  <dd className="muted">{currency}, {percent(shareOf(part.cost, cost))} of it</dd>
                </div>
              ))}
            </dl>
            <PartsBar parts={parts} cost={cost ?? 0} />
          </>
        );
      }}
    </Loaded>
  );
}
