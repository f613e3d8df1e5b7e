// Line icons on a 16 by 16 grid. They are decorative; text beside them or labels have the meaning.
import type { ReactNode } from "react";

const paths = {
  overview: "M2 13.5h12M3.5 13V8M6.5 13V4M9.5 13V6.5M12.5 13V2.5",
  map: "M2 3h5.5v3H2zM9.5 3H14v3H9.5zM2 8h3v5H2zM7 8h7v5H7z",
  workloads: "M2 4h1M5.5 4H14M2 8h1M5.5 8H14M2 12h1M5.5 12H14",
  decisions: "M3 2.5v11M3 5.5h4.5c2.5 0 2.5 5 5 5M10.5 8.5l2 2-2 2",
  quotas: "M2 4h12M2 8h8M2 12h5M12 6v8",
  team: "M5.500 7.500a2.300 2.300 0 1 0 0-4.600 2.300 2.300 0 0 0 0 4.600zM1.500 13.500c0-2.500 1.800-4 4-4s4 1.500 4 4M10.500 7.300a2 2 0 1 0-.4-3.900M11.300 9.600c1.900.2 3.200 1.600 3.200 3.900",
  pools: "M2 2.5h12v3H2zM2 8h12v3H2zM4 4h.1M4 9.5h.1M8 13.5h6M11 12v3",
  cost: "M8 1.500a6.500 6.500 0 1 0 0 13 6.500 6.500 0 0 0 0-13zM10.500 5.800c-.5-.8-1.400-1.200-2.500-1.200-1.500 0-2.500.7-2.500 1.700 0 2.400 5.100 1 5.100 3.500 0 1-1.100 1.700-2.600 1.700-1.200 0-2.200-.5-2.700-1.300M8 3.300v9.400",
  "what-if": "M6 6a2.2 2.2 0 1 1 3.3 1.9c-.8.5-1.3.9-1.3 2.1M8 12.6v.1M8 1.5a6.5 6.5 0 1 0 0 13 6.5 6.5 0 0 0 0-13z",
  down: "M4.5 6.5 8 10l3.5-3.5",
  right: "M6.5 4.5 10 8l-3.5 3.5",
  close: "M4 4l8 8M12 4l-8 8",
  search: "M7 2.5a4.5 4.5 0 1 0 0 9 4.5 4.5 0 0 0 0-9zM10.4 10.4 14 14",
  play: "M5 3.5v9l7.5-4.5z",
  pause: "M5.5 3.5v9M10.5 3.5v9",
  back: "M10 3.5 5.5 8l4.5 4.5",
  forward: "M6 3.5 10.5 8 6 12.5",
  sun: "M8 5a3 3 0 1 0 0 6 3 3 0 0 0 0-6zM8 1v1.5M8 13.5V15M1 8h1.5M13.5 8H15M3 3l1 1M12 12l1 1M13 3l-1 1M4 12l-1 1",
  moon: "M13 9.5A5.5 5.5 0 0 1 6.5 3a5.5 5.5 0 1 0 6.5 6.5z",
  auto: "M8 2a6 6 0 1 0 0 12zM8 2a6 6 0 0 1 0 12",
  alert: "M8 2 1.5 13.5h13zM8 6.5v3M8 11.6v.1",
  link: "M6.5 9.5a2.5 2.5 0 0 0 3.6 0l2.4-2.4a2.5 2.5 0 0 0-3.6-3.6l-.9.9M9.5 6.5a2.5 2.5 0 0 0-3.6 0L3.500 8.900a2.5 2.5 0 0 0 3.600 3.600l.9-.9",
  check: "M3 8.500l3.500 3.500L13 4.500",
  save: "M8 2.5v7.500M4.800 7 8 10.200 11.200 7M2.500 13.500h11",
  plus: "M8 3v10M3 8h10",
  minus: "M3 8h10",
} as const;

export type IconName = keyof typeof paths;

export function Icon({ name }: { name: IconName }): ReactNode {
  return (
    <svg className="icon" viewBox="0 0 16 16" width="16" height="16" aria-hidden="true" focusable="false">
      <path d={paths[name]} />
    </svg>
  );
}
