// A chart as a picture of its own: title, legend and plot on the page's ground.
import type uPlot from "uplot";

export interface Legend {
  label: string;
  value: string;
  /** CSS colour. */
  colour: string;
  dash?: number[];
}

const sans = "system-ui, sans-serif";
const edge = 12;
const line = 18;

/** `ground`, `text`: CSS colours. */
export function pictureOf(plot: uPlot, title: string, note: string, legend: readonly Legend[], ground: string, text: string): HTMLCanvasElement | undefined {
  const ratio = window.devicePixelRatio || 1;
  const source = plot.ctx.canvas;
  const [width, height] = [source.width / ratio, source.height / ratio];
  const canvas = document.createElement("canvas");
  const context = canvas.getContext("2d");
  if (!context) return undefined;
  context.font = `12px ${sans}`;
  // The legend in lines as wide as the plot.
  const places: { x: number; y: number; entry: Legend }[] = [];
  let [x, y] = [0, 0];
  for (const entry of legend) {
    const wide = 26 + context.measureText(`${entry.label} ${entry.value}`).width + 16;
    if (x > 0 && x + wide > width) [x, y] = [0, y + line];
    places.push({ x, y, entry });
    x += wide;
  }
  canvas.width = Math.ceil((width + 2 * edge) * ratio);
  canvas.height = Math.ceil((2 * edge + line + 6 + height + (legend.length > 0 ? y + line : 0)) * ratio);
  context.scale(ratio, ratio);
  context.fillStyle = ground;
  context.fillRect(0, 0, canvas.width, canvas.height);
  context.textBaseline = "middle";
  context.fillStyle = text;
  context.font = `600 13px ${sans}`;
  context.fillText(title, edge, edge + line / 2);
  const after = context.measureText(title).width + 10;
  context.font = `12px ${sans}`;
  context.globalAlpha = 0.7;
  context.fillText(note, edge + after, edge + line / 2);
  context.globalAlpha = 1;
  context.drawImage(source, edge, edge + line + 6, width, height);
  const below = edge + line + 6 + height;
  for (const { x: left, y: down, entry } of places) {
    const middle = below + down + line / 2;
    context.strokeStyle = entry.colour;
    context.lineWidth = 2.5;
    context.setLineDash(entry.dash ?? []);
    context.beginPath();
    context.moveTo(edge + left, middle);
    context.lineTo(edge + left + 20, middle);
    context.stroke();
    context.fillStyle = text;
    context.fillText(`${entry.label} ${entry.value}`, edge + left + 26, middle);
  }
  return canvas;
}
