import type { ReactNode } from "react";
import type { QuotaAmounts } from "../api/types";
import { percent } from "../lib/format";

/** Usage within the guarantee, then borrowed usage; marks at the guarantee, the minimum and the maximum. */
export function QuotaBar({ amounts, most }: { amounts: QuotaAmounts; most: number }): ReactNode {
  const share = (value: number): string => `${Math.max(0, Math.min(1, value / most)) * 100}%`;
  const own = Math.max(0, amounts.used - amounts.borrowed);
  const text = `uses ${percent(amounts.guaranteed > 0 ? amounts.used / amounts.guaranteed : 0)} of what is guaranteed`;
  return (
    <span className="quota-bar" role="img" aria-label={text} title={text}>
      <span className="quota-guaranteed" style={{ width: share(amounts.guaranteed) }} />
      <span className="quota-own" style={{ width: share(own) }} />
      <span className="quota-borrowed" style={{ left: share(own), width: share(amounts.borrowed) }} />
      {amounts.min > 0 && <span className="quota-min" style={{ left: share(amounts.min) }} />}
      {amounts.max !== undefined && <span className="quota-max" style={{ left: share(amounts.max) }} />}
    </span>
  );
}
