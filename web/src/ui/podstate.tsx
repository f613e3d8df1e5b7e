import type { ReactNode } from "react";
import type { PodState } from "../api/types";

const shapes: Record<PodState, string> = {
  pending: "M8 3a5 5 0 1 0 0 10A5 5 0 0 0 8 3zM8 5.500V8l1.800 1.200",
  starting: "M8 3a5 5 0 0 1 5 5",
  running: "M5.500 4v8l6-4z",
  succeeded: "M4 8.300l2.800 2.700L12 5.200",
  failed: "M4.500 4.500l7 7M11.500 4.500l-7 7",
  terminating: "M4 8h8",
};

/** A pod's state by shape, word and colour. */
export function StateMark({ state }: { state: PodState }): ReactNode {
  return (
    <span className="pod-state" data-state={state}>
      <svg className="icon" viewBox="0 0 16 16" width="14" height="14" aria-hidden="true">
        <path d={shapes[state] ?? shapes.starting} />
      </svg>
      {state}
    </span>
  );
}
