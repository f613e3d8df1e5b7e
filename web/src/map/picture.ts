// The whole map as a picture, with a title and a legend.
import { rampColour, rampSteps } from "../lib/palette";
import { kindNames, type Kind } from "./cells";
import { draw, drawSwatch, swatchOf, teamColour, type Colours, type Scene } from "./draw";

const sans = "system-ui, sans-serif";
const edge = 16;
const line = 20;
/** Browsers draw no larger canvas. */
const largest = 16_000;

type Look = Parameters<typeof drawSwatch>[2];

function legendOf({ by, teams, dark }: Scene, colours: Colours): { text: string; look: Look }[] {
  const kind = (name: Kind): { text: string; look: Look } => ({ text: kindNames[name], look: swatchOf(name, colours) });
  if (by === "state") return (["busy", "idle", "held", "free", "unpartitioned", "out"] as const).map(kind);
  if (by === "utilization") {
    const steps = Array.from({ length: rampSteps }, (_, step) => ({
      text: `${(step * 100) / rampSteps}–${((step + 1) * 100) / rampSteps} %`,
      look: { fill: rampColour(step / rampSteps, dark), texture: "none", outlined: false } as Look,
    }));
    return [...steps, kind("held"), kind("free"), kind("unpartitioned")];
  }
  const marks = [...teams].slice(0, 24).map(([text, mark]) => ({
    text, look: { fill: teamColour(mark, dark), texture: mark.hatch ? "hatch" : "none", outlined: false } as Look,
  }));
  return [...marks, kind("free"), kind("unpartitioned"), kind("out")];
}

export function pictureOfMap(scene: Scene, colours: Colours, ground: string, title: string): HTMLCanvasElement | undefined {
  const canvas = document.createElement("canvas");
  const context = canvas.getContext("2d");
  if (!context) return undefined;
  const { geometry } = scene;
  const width = Math.max(320, geometry.width) + 2 * edge;
  context.font = `12px ${sans}`;
  let [x, y] = [0, 0];
  const places = legendOf(scene, colours).map((entry) => {
    const wide = 22 + context.measureText(entry.text).width + 16;
    if (x > 0 && x + wide > width - 2 * edge) [x, y] = [0, y + line];
    const place = { x, y, entry };
    x += wide;
    return place;
  });
  const top = edge + line + y + line + 10;
  const height = top + geometry.height + edge;
  const ratio = Math.min(2, largest / Math.max(width, height));
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  context.scale(ratio, ratio);
  context.fillStyle = ground;
  context.fillRect(0, 0, width, height);
  context.textBaseline = "middle";
  context.fillStyle = colours.text;
  context.font = `600 13px ${sans}`;
  context.fillText(title, edge, edge + line / 2);
  context.font = `12px ${sans}`;
  for (const place of places) {
    const middle = edge + line + place.y + line / 2;
    drawSwatch(context, { x: edge + place.x, y: middle - 5, width: 16, height: 10 }, place.entry.look, colours);
    context.fillStyle = colours.text;
    context.fillText(place.entry.text, edge + place.x + 22, middle);
  }
  context.translate(edge, top);
  draw(context, scene, colours, 0, geometry.height);
  return canvas;
}
