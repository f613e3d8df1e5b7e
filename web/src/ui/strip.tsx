import type { ReactNode } from "react";
import type { GpuLayout } from "../api/types";
import { compute, piecesOf } from "../lib/layouts";

/** A GPU's instances by size. Instances missing on the other side are marked. */
export function Strip({ label, layout, other }: { label: string; layout: GpuLayout | undefined; other: GpuLayout | undefined }): ReactNode {
  const pieces = piecesOf(layout);
  const left = new Map(Object.entries(other?.profiles ?? {}));
  const words = pieces.length > 0 ? pieces.join(", ") : "nothing partitioned";
  return (
    <span className="strip" role="img" aria-label={`${label}: ${words}`}>
      {pieces.length === 0 && <span className="strip-empty">not partitioned</span>}
      {pieces.map((profile, place) => {
        const same = (left.get(profile) ?? 0) > 0;
        left.set(profile, (left.get(profile) ?? 0) - 1);
        return (
          <span key={place} className="strip-piece" data-same={same} style={{ flexGrow: compute(profile) }}>
            {profile}
          </span>
        );
      })}
    </span>
  );
}
