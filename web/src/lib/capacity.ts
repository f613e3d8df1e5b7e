// The state of all slots of the cluster: one bar that adds up to the whole.
import type { Overview } from "../api/types";

export type PartId = "used" | "held" | "idle" | "unmeasured" | "free" | "fragmented" | "stranded" | "out";

export interface Part {
  id: PartId;
  label: string;
  share: number;
  help: string;
}

const clamp = (value: number, most: number): number => Math.max(0, Math.min(value, most));

/**
 * Splits the whole into parts that do not overlap. Reported shares may overlap by rounding and by
 * definition (an idle slice computes a little, too), so each takes at most what is left.
 */
export function partsOf(overview: Overview): Part[] {
  const allocated = clamp(overview.allocated, 1);
  const parts: Part[] = [];
  const add = (id: PartId, label: string, share: number, help: string): void => {
    parts.push({ id, label, share, help });
  };
  if (overview.used === null) {
    add("unmeasured", "Held, not measured", allocated, "Held by pods; these GPUs do not report how busy slices are.");
  } else {
    const used = clamp(overview.used, allocated);
    const idle = clamp(overview.idle ?? 0, allocated - used);
    add("used", "Computing", used, "Held by pods, times how busy they keep it.");
    add("held", "Held, headroom", allocated - used - idle, "Held by pods that keep it busy only in part.");
    add("idle", "Held, idle", idle, "Held by pods that keep it busy below 5 %.");
  }
  let left = 1 - allocated;
  const rest = (id: PartId, label: string, share: number, help: string): void => {
    const taken = clamp(share, left);
    left -= taken;
    add(id, label, taken, help);
  };
  rest("free", "Free", overview.free, "Can be given out as it is.");
  rest("fragmented", "Fragmented", overview.fragmented, "Free, but not in a form that waiting pods need.");
  rest("stranded", "Stranded", overview.stranded, "Free, but its node lacks CPU or memory for the pods that would use it.");
  if (left > 0.0005) add("out", "Out of service", left, "Unhealthy GPUs, nodes that are not ready, slots that no layout can use.");
  return parts.filter((part) => part.share > 0 || part.id === "free" || part.id === "idle");
}
