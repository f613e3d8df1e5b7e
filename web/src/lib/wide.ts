import { useSyncExternalStore } from "react";

/** True while the window is at least that many CSS pixels wide. */
export function useWide(pixels: number): boolean {
  return useSyncExternalStore(
    (listener) => {
      const query = window.matchMedia(`(min-width: ${pixels}px)`);
      query.addEventListener("change", listener);
      return () => query.removeEventListener("change", listener);
    },
    () => window.matchMedia(`(min-width: ${pixels}px)`).matches,
  );
}
