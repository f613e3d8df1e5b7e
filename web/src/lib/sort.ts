// The order of the list of pods, by column.
import { podStates, type Pod } from "../api/types";
import { compareNames } from "./names";
import { memoryOf } from "./pods";
import { wantedOf } from "./waiting";

export const columns = ["state", "pod", "asks", "where", "busy", "memory", "since"] as const;
export type Column = (typeof columns)[number];

export interface Order {
  column: Column;
  down: boolean;
}

/** "-since": downwards. Undefined: the server's order. */
export function orderOf(text: string | undefined): Order | undefined {
  const down = text?.startsWith("-") ?? false;
  const column = columns.find((each) => each === (down ? text?.slice(1) : text));
  return column && { column, down };
}

/** Of a column that is clicked: first the way that is of most use, then the other one, then none. */
export function nextOrder(now: Order | undefined, column: Column): string {
  const firstDown = column === "since" || column === "busy" || column === "memory";
  if (now?.column !== column) return firstDown ? `-${column}` : column;
  return now.down === firstDown ? (firstDown ? column : `-${column}`) : "";
}

/** When its present state began: it has waited, run or been over since then. */
export const sinceOf = (pod: Pod): number => pod.finished || pod.started || pod.created;

export function busyOf(pod: Pod): number | null {
  const known = pod.slices.map((each) => each.utilization).filter((each): each is number => each !== null);
  return known.length > 0 ? known.reduce((sum, each) => sum + each, 0) / known.length : null;
}

const fullName = (pod: Pod): string => `${pod.namespace}/${pod.name}`;
const placeOf = (pod: Pod): string => pod.node || pod.why || pod.message;

/** Unknown values come last, upwards and downwards. */
export function sortPods(pods: readonly Pod[], order: Order | undefined, now: number): Pod[] {
  if (!order) return [...pods];
  const way = order.down ? -1 : 1;
  const numbers: Partial<Record<Column, (pod: Pod) => number | null>> = {
    state: (pod) => podStates.indexOf(pod.state),
    busy: busyOf,
    memory: memoryOf,
    since: (pod) => now - sinceOf(pod),
  };
  const number = numbers[order.column];
  const text = order.column === "asks" ? wantedOf : order.column === "where" ? placeOf : fullName;
  return [...pods].sort((a, b) => {
    let by = 0;
    if (number) {
      const [one, other] = [number(a), number(b)];
      if (one === null || other === null) by = one === other ? 0 : (one === null ? 1 : -1) * way;
      else by = one - other;
    } else by = compareNames(text(a), text(b));
    return by * way || compareNames(fullName(a), fullName(b));
  });
}
