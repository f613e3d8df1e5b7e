// The parts of a cost: a bar, and a list of their amounts.
import type { ReactNode } from "react";
import { shareOf, sum, type CostPart } from "../lib/costs";
import { percent } from "../lib/format";

/** Textures as on the overview. */
export const partStyle: Record<CostPart["id"], string> = {
  used: "used", idle: "idle", unknown: "unmeasured", free: "free", unpartitioned: "empty", fragmented: "fragmented", stranded: "stranded", not_reported: "out",
  others: "others",
};

export const Swatch = ({ part }: { part: CostPart }): ReactNode => <span className="swatch" data-part={partStyle[part.id]} aria-hidden="true" />;

export function PartsBar({ parts, cost }: { parts: readonly CostPart[]; cost: number }): ReactNode {
  return (
    <div className="capacity-bar" aria-hidden="true">
      {parts.map((each) => (
        <span
          key={each.id} className="capacity-part" data-part={partStyle[each.id]} style={{ flexGrow: each.cost / Math.max(1, cost) }}
          title={`${each.label}: ${sum(each.cost)}`}
        />
      ))}
    </div>
  );
}

interface PartsListProps {
  parts: readonly CostPart[];
  cost: number | null;
  write?: (amount: number) => string;
  /** Before the parts. */
  title?: ReactNode;
}

export function PartsList({ parts, cost, write = sum, title }: PartsListProps): ReactNode {
  return (
    <ul className="capacity-legend">
      {title && <li>{title}</li>}
      {parts.map((each) => (
        <li key={each.id} title={each.help}>
          <Swatch part={each} />
          <span>{each.label}</span>
          <strong>{write(each.cost)}</strong>
          <span className="muted">{percent(shareOf(each.cost, cost))}</span>
          <span className="hidden">{each.help}</span>
        </li>
      ))}
    </ul>
  );
}
