// The simulated cluster's GPU products. Placements as in the core's catalogue
// (src/gpu/catalogue.yaml).

export interface Profile {
  name: string;
  size: number;
  starts: number[];
  memory: number;
}

export interface Model {
  product: string;
  memory: number;
  slots: number;
  power: number;
  profiles: Profile[];
  nodes: number;
  prefix: string;
  /** True if the driver reports the load of an instance. */
  measured: boolean;
}

const seven = (unit: number): Profile[] => [
  { name: `1g.${unit}gb`, size: 1, starts: [0, 1, 2, 3, 4, 5, 6], memory: unit * 1000 },
  { name: `2g.${unit * 2}gb`, size: 2, starts: [0, 2, 4], memory: unit * 2000 },
  { name: `3g.${unit * 4}gb`, size: 4, starts: [4, 0], memory: unit * 4000 },
  { name: `7g.${unit * 8}gb`, size: 8, starts: [0], memory: unit * 8000 },
];

export const models: Model[] = [
  {
    product: "NVIDIA A100-SXM4-40GB",
    memory: 40960,
    slots: 8,
    power: 400,
    profiles: seven(5),
    nodes: 16,
    prefix: "a100",
    measured: true,
  },
  {
    product: "NVIDIA H100 80GB HBM3",
    memory: 81559,
    slots: 8,
    power: 700,
    profiles: seven(10),
    nodes: 12,
    prefix: "h100",
    measured: true,
  },
  {
    product: "NVIDIA A30",
    memory: 24576,
    slots: 4,
    power: 165,
    profiles: [
      { name: "1g.6gb", size: 1, starts: [0, 1, 2, 3], memory: 5949 },
      { name: "2g.12gb", size: 2, starts: [0, 2], memory: 11971 },
      { name: "4g.24gb", size: 4, starts: [0], memory: 24003 },
    ],
    nodes: 8,
    prefix: "a30",
    measured: false,
  },
  { product: "Tesla T4", memory: 15360, slots: 0, power: 70, profiles: [], nodes: 4, prefix: "t4", measured: true },
];

export const gpusPerNode = 8;

export interface Team {
  namespace: string;
  quota: string;
  min: number;
  max?: number;
  /** Share of arriving pods. */
  weight: number;
  jobs: string[];
}

// Amounts are gigabytes of GPU memory.
export const teams: Team[] = [
  { namespace: "vision", quota: "vision/quota", min: 2600, max: 4200, weight: 26, jobs: ["segment", "detector", "depth-train"] },
  { namespace: "language", quota: "language/quota", min: 3600, weight: 34, jobs: ["llm-tune", "embed", "eval-suite"] },
  { namespace: "speech", quota: "speech/quota", min: 1600, max: 2400, weight: 14, jobs: ["asr-batch", "diarise"] },
  { namespace: "robotics", quota: "robotics/quota", min: 1600, weight: 10, jobs: ["policy-rl", "sim-rollout"] },
  { namespace: "notebooks", quota: "notebooks/quota", min: 600, max: 1200, weight: 12, jobs: ["jupyter"] },
  { namespace: "platform", quota: "", min: 0, weight: 4, jobs: ["smoke-test", "triton"] },
];
