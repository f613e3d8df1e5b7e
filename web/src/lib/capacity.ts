// The state of all slots of the cluster: one bar that adds up to the whole.
import type { Overview } from "../api/types";

export type PartId = "used" | "held" | "idle" | "unmeasured" | "free" | "empty" | "fragmented" | "stranded" | "out";

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
    add("unmeasured", "Allocated, not measured", allocated, "Allocated to pods; these GPUs do not report how busy slices are.");
  } else {
    const used = clamp(overview.used, allocated);
    const idle = clamp(overview.idle ?? 0, allocated - used);
    add("used", "Computing", used, "Allocated to pods, times how busy they keep it.");
    add("held", "Allocated, not busy", allocated - used - idle, "Allocated to pods that keep it busy only in part.");
    add("idle", "Allocated, idle", idle, "Allocated to pods that keep it busy below 5 %.");
  }
  let left = 1 - allocated;
  const rest = (id: PartId, label: string, share: number, help: string): void => {
    const taken = clamp(share, left);
    left -= taken;
    add(id, label, taken, help);
  };
  const empty = clamp(overview.empty ?? 0, overview.free);
  rest("free", "Free beside pods", overview.free - empty, "On GPUs in use, in a form that pods can get.");
  rest("empty", "Empty GPUs", empty, "On GPUs that no pod uses: can be given back now, or partitioned for any pod.");
  rest("fragmented", "Locked", overview.fragmented, "Free, but no layout beside the pods in use gives it to the sizes that wait.");
  rest("stranded", "Stranded", overview.stranded, "Free, but its node lacks CPU or memory for the pods that would use it.");
  if (left > 0.0005) add("out", "Out of service", left, "Unhealthy GPUs, nodes that are not ready, slots that no layout can use.");
  return parts.filter((part) => part.share > 0 || part.id === "free" || part.id === "idle");
}
