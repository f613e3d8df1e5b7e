// The meaning of colours and textures, with amounts. Teams can be highlighted.
import { useEffect, useRef, type ReactNode } from "react";
import { ToggleButton } from "react-aria-components";
import { percent } from "../lib/format";
import { rampColour, rampSteps, type TeamMark } from "../lib/palette";
import { setParams } from "../lib/route";
import { useDark } from "../lib/theme";
import { kindNames, type Kind, type Slots } from "./cells";
import { coloursOf, drawSwatch, swatchOf, teamColour, type By, type Colours } from "./draw";

interface Props {
  by: By;
  teams: Map<string, TeamMark>;
  slots: Slots;
  team: string;
}

export function Legend({ by, teams, slots, team }: Props): ReactNode {
  const share = (value: number): string => percent(slots.total > 0 ? value / slots.total : 0);
  if (by === "utilization") {
    return (
      <ul className="legend" aria-label="Legend">
        {Array.from({ length: rampSteps }, (_, step) => (
          <li key={step}>
            <Swatch ramp={step / rampSteps} />
            {(step * 100) / rampSteps}–{((step + 1) * 100) / rampSteps} %
          </li>
        ))}
        <li>
          <Swatch ramp={0} hatched />
          below 5 % <strong>{share(slots.byKind.idle)}</strong>
        </li>
        <KindItem kind="held" text="not measured" amount={share(slots.byKind.held)} />
        <KindItem kind="free" amount={share(slots.byKind.free)} />
        <KindItem kind="unpartitioned" amount={share(slots.byKind.unpartitioned)} />
      </ul>
    );
  }
  if (by === "state") {
    return (
      <ul className="legend" aria-label="Legend">
        {(["busy", "idle", "held", "free", "unpartitioned", "out"] as const).map((kind) => (
          <KindItem key={kind} kind={kind} amount={share(slots.byKind[kind])} />
        ))}
      </ul>
    );
  }
  const bySize = [...teams].sort((a, b) => (slots.byTeam.get(b[0]) ?? 0) - (slots.byTeam.get(a[0]) ?? 0));
  return (
    <ul className="legend" aria-label="Legend">
      {bySize.slice(0, 24).map(([name, mark]) => (
        <li key={name}>
          <ToggleButton
            className="legend-team" isSelected={team === name}
            onChange={(on) => setParams({ team: on ? name : "" })}
          >
            <Swatch mark={mark} />
            <span className="ellipsis">{name}</span>
            <strong>{share(slots.byTeam.get(name) ?? 0)}</strong>
          </ToggleButton>
        </li>
      ))}
      {bySize.length > 24 && <li className="muted">and {bySize.length - 24} more</li>}
      <KindItem kind="free" amount={share(slots.byKind.free)} />
      <KindItem kind="unpartitioned" amount={share(slots.byKind.unpartitioned)} />
      <KindItem kind="out" amount={share(slots.byKind.out)} />
    </ul>
  );
}

function KindItem({ kind, text, amount }: { kind: Kind; text?: string; amount: string }): ReactNode {
  return (
    <li>
      <Swatch kind={kind} />
      {text ?? kindNames[kind]} <strong>{amount}</strong>
    </li>
  );
}

/** Drawn like the map itself, so that both match. */
function Swatch({ kind, mark, ramp, hatched }: { kind?: Kind; mark?: TeamMark; ramp?: number; hatched?: boolean }): ReactNode {
  const canvas = useRef<HTMLCanvasElement>(null);
  const dark = useDark();
  const { colour, hatch } = mark ?? { colour: 0, hatch: false };
  useEffect(() => {
    const element = canvas.current;
    const context = element?.getContext("2d");
    if (!element || !context) return;
    const colours = coloursOf(element, dark);
    context.setTransform(2, 0, 0, 2, 0, 0);
    drawSwatch(context, { x: 0, y: 0, width: 16, height: 10 }, lookOf(colours), colours);

    function lookOf(all: Colours): Parameters<typeof drawSwatch>[2] {
      if (kind) return swatchOf(kind, all);
      if (ramp !== undefined) return { fill: rampColour(ramp, dark), texture: hatched ? "hatch" : "none", outlined: false };
      return { fill: teamColour({ colour, hatch }, dark), texture: hatch ? "hatch" : "none", outlined: false };
    }
  }, [kind, colour, hatch, ramp, hatched, dark]);
  return <canvas ref={canvas} className="legend-swatch" width={32} height={20} aria-hidden="true" />;
}
