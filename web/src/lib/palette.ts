// Colours that colour-blind users can distinguish too; they are never the only mark. Team colours
// are after Okabe and Ito (https://jfly.uni-koeln.de/color/). The ramp of utilisation goes from
// orange to blue, which differ with all kinds of colour blindness: waste is hot, good use is calm.

export const teamColours = {
  light: ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#7a68c7", "#80701a"],
  dark: ["#4aa3dc", "#f0b441", "#2fbf94", "#dd95bd", "#86cdf5", "#ef8244", "#a295e6", "#c2b04a"],
} as const;

/** Colour and hatch of a team: the first free one from the position given by its name's hash. */
export interface TeamMark {
  colour: number;
  hatch: boolean;
}

function hash(text: string): number {
  let value = 2166136261;
  for (let index = 0; index < text.length; index++) {
    value = Math.imul(value ^ text.charCodeAt(index), 16777619);
  }
  return value >>> 0;
}

/** The same names give the same marks in any order; up to 16 teams look different. */
export function markTeams(names: Iterable<string>): Map<string, TeamMark> {
  const places = teamColours.light.length * 2;
  const taken = new Set<number>();
  const marks = new Map<string, TeamMark>();
  for (const name of [...new Set(names)].sort()) {
    let place = hash(name) % teamColours.light.length;
    for (let tries = 0; tries < places && taken.has(place); tries++) place = (place + 1) % places;
    taken.add(place);
    marks.set(name, {
      colour: place % teamColours.light.length,
      hatch: place >= teamColours.light.length,
    });
  }
  return marks;
}

const ramp = {
  light: ["#c2410c", "#ec8f55", "#e3cfa8", "#86b5dc", "#1f6fb2"],
  dark: ["#fb7c4a", "#c9733f", "#6b6459", "#3a77ab", "#6db3f2"],
} as const;

export const rampSteps = 5;

/** The step of the ramp for a fraction: each step covers a fifth. */
export function rampStep(value: number): number {
  return Math.max(0, Math.min(rampSteps - 1, Math.floor(value * rampSteps + 1e-9)));
}

export function rampColour(value: number, dark: boolean): string {
  return ramp[dark ? "dark" : "light"][rampStep(value)] ?? "#888888";
}

/** Relative luminance and contrast, WCAG 2.1. */
export function luminance(colour: string): number {
  const channel = (at: number): number => {
    const value = parseInt(colour.slice(at, at + 2), 16) / 255;
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  };
  return 0.2126 * channel(1) + 0.7152 * channel(3) + 0.0722 * channel(5);
}

export function contrast(one: string, other: string): number {
  const [high, low] = [luminance(one), luminance(other)].sort((a, b) => b - a) as [number, number];
  return (high + 0.05) / (low + 0.05);
}

/** Black or white, whichever has more contrast with the colour. */
export function inkOn(colour: string): string {
  return contrast(colour, "#101418") >= contrast(colour, "#ffffff") ? "#101418" : "#ffffff";
}
