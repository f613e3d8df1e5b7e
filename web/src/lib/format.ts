// Numbers and times for display. Every number has a unit; a missing value is a dash.

export const nothing = "–";

type Maybe = number | null | undefined;

const known = (value: Maybe): value is number => typeof value === "number" && Number.isFinite(value);

/** A fraction as per cent; with one digit below 10 %. */
export function percent(value: Maybe): string {
  if (!known(value)) return nothing;
  const scaled = value * 100;
  const digits = Math.abs(scaled) < 9.95 && scaled !== 0 ? 1 : 0;
  return `${scaled.toFixed(digits)} %`;
}

/** MiB as MiB, GiB or TiB. */
export function memory(mib: Maybe): string {
  if (!known(mib)) return nothing;
  if (Math.abs(mib) < 1024) return `${Math.round(mib)} MiB`;
  if (Math.abs(mib) < 1024 * 1024) return `${trim(mib / 1024)} GiB`;
  return `${trim(mib / 1024 / 1024)} TiB`;
}

const trim = (value: number): string =>
  Math.abs(value) >= 100 ? value.toFixed(0) : value.toFixed(1).replace(/\.0$/, "");

const grouped = new Intl.NumberFormat("en", { maximumFractionDigits: 1 });

export function count(value: Maybe): string {
  return known(value) ? grouped.format(value) : nothing;
}

/** "1 GPU", "1,024 GPUs". */
export function counted(value: number, one: string, many = `${one}s`): string {
  return `${count(value)} ${value === 1 ? one : many}`;
}

const spans: [number, string][] = [
  [86_400, "d"],
  [3_600, "h"],
  [60, "min"],
  [1, "s"],
];

/** Seconds in at most two units: "4 s", "3 min 20 s", "2 d 4 h". */
export function duration(seconds: Maybe): string {
  if (!known(seconds)) return nothing;
  let rest = Math.max(0, Math.round(seconds));
  if (seconds > 0 && seconds < 1) return `${Math.round(seconds * 1000)} ms`;
  const parts: string[] = [];
  for (const [size, unit] of spans) {
    const amount = Math.floor(rest / size);
    rest -= amount * size;
    if (amount > 0) parts.push(`${amount} ${unit}`);
    else if (parts.length > 0) break;
    if (parts.length === 2) break;
  }
  return parts.length > 0 ? parts.join(" ") : "0 s";
}

export function milliseconds(value: Maybe): string {
  if (!known(value)) return nothing;
  return value < 1000 ? `${Math.round(value)} ms` : duration(value / 1000);
}

/** The unit of a metric decides its format. Names and units as in the API. */
export function formatter(unit: string): (value: Maybe) => string {
  switch (unit) {
    case "":
    case "fraction":
    case "ratio":
    case "1":
      return percent;
    case "MiB":
      return memory;
    case "s":
    case "seconds":
      return duration;
    case "count":
    case "pods":
      return count;
    case "celsius":
    case "°C":
      return (value) => (known(value) ? `${Math.round(value)} °C` : nothing);
    default:
      return (value) => (known(value) ? `${count(value)} ${unit}` : nothing);
  }
}

/** A metric of a GPU or an instance, by its name. */
export function metric(name: string, value: Maybe): string {
  if (!known(value)) return nothing;
  if (name === "utilization" || name === "memory_utilization") return percent(value);
  if (name.startsWith("memory_") && name !== "memory_clock") return memory(value);
  if (name.startsWith("power")) return `${Math.round(value)} W`;
  if (name === "temperature") return `${Math.round(value)} °C`;
  if (name.endsWith("_clock")) return `${count(value)} MHz`;
  if (name.startsWith("pcie_")) return `${trim(value / 1024)} MiB/s`;
  return count(value);
}

/** Format of the values of a series: by its metric if that is known, else by its unit. */
export function writer(name: string, unit: string): (value: Maybe) => string {
  if (name in words) return (value) => metric(name, value);
  return formatter(unit);
}

const words: Record<string, string> = {
  utilization: "Utilisation",
  memory_utilization: "Memory bandwidth in use",
  memory_used: "Memory used",
  memory_total: "Memory",
  power: "Power",
  power_limit: "Power limit",
  temperature: "Temperature",
  sm_clock: "SM clock",
  memory_clock: "Memory clock",
  ecc_corrected: "ECC errors corrected",
  ecc_uncorrected: "ECC errors uncorrected",
  pcie_tx: "PCIe sent",
  pcie_rx: "PCIe received",
};

export function metricName(name: string): string {
  return words[name] ?? name.replaceAll("_", " ");
}

const pad = (value: number): string => String(value).padStart(2, "0");

/** Local time of day; with the date if it is not today. `now` decides which day is today. */
export function clock(at: number, now: number, seconds = true): string {
  const time = new Date(at);
  const ofDay = `${pad(time.getHours())}:${pad(time.getMinutes())}${seconds ? `:${pad(time.getSeconds())}` : ""}`;
  if (time.toDateString() === new Date(now).toDateString()) return ofDay;
  return `${date(at)} ${ofDay}`;
}

export function date(at: number): string {
  const time = new Date(at);
  return `${time.getFullYear()}-${pad(time.getMonth() + 1)}-${pad(time.getDate())}`;
}

export function ago(at: number, now: number): string {
  const seconds = (now - at) / 1000;
  if (seconds < 1) return "just now";
  return `${duration(seconds >= 120 ? Math.floor(seconds / 60) * 60 : seconds)} ago`;
}

/** A resource by the distinguishing part of its name, and its amount. */
export function request(resource: string, amount: number): string {
  if (resource === "cpu") return counted(amount, "core");
  if (resource === "memory") return memory(amount);
  const name = resource.replace(/^nvidia\.com\/(mig-)?/, "").replace(/^nos\.nebuly\.com\//, "").replace(/^deviceclass\.resource\.kubernetes\.io\//, "");
  if (name === "gpu") return counted(amount, "GPU");
  if (name === "gpu-memory") return `${count(amount)} GB GPU memory`;
  return amount === 1 ? name : `${count(amount)} × ${name}`;
}

/** An amount of a resource, for axes and tables. */
export function amount(resource: string, value: Maybe): string {
  if (!known(value)) return nothing;
  if (resource.endsWith("gpu-memory")) return `${count(value)} GB`;
  if (resource === "cpu") return `${count(value)} cores`;
  if (resource === "memory") return memory(value);
  return count(value);
}
