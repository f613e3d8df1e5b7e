import type { Page } from "../lib/route";

export const titles: Record<Page, string> = {
  overview: "Overview",
  map: "GPU map",
  workloads: "Workloads",
  decisions: "Decisions",
  quotas: "Quotas",
  team: "Team",
  pools: "Pools",
  cost: "Cost",
  "what-if": "What if",
  wall: "Wall",
};
