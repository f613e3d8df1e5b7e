// Tables as CSV (RFC 4180): for spreadsheets, which must not take a text for a formula.
export type Value = string | number | boolean | null | undefined;

export interface Column<T> {
  /** With its unit: "memory_used_mib". */
  name: string;
  of: (row: T) => Value;
}

/** Spreadsheets calculate a cell that begins so, also after blanks. */
const formula = /^\s*[=+\-@\uff1d\uff0b\uff0d\uff20]|^[\t\r\n]/;

function field(value: Value): string {
  if (value === null || value === undefined) return "";
  if (typeof value === "number") return Number.isFinite(value) ? String(value) : "";
  if (typeof value === "boolean") return String(value);
  const text = formula.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

export function csvOf<T>(columns: readonly Column<T>[], rows: readonly T[]): string {
  const lines = [columns.map((each) => field(each.name)), ...rows.map((row) => columns.map((each) => field(each.of(row))))];
  return lines.map((line) => `${line.join(",")}\r\n`).join("");
}

/** A moment for a table: UTC, in seconds; empty if there is none. */
export function iso(at: number | null | undefined): string {
  return typeof at === "number" && at > 0 && at < 8.64e15 ? new Date(at).toISOString().replace(/\.\d+Z$/, "Z") : "";
}

/** "nos-prod-pods-2026-06-17T14-20-04Z.csv". Names of clusters come from outside. */
export function fileName(cluster: string, what: string, at: number, ending: string): string {
  const plain = (text: string): string => text.replace(/[^A-Za-z0-9._-]+/g, "-").replace(/^[-.]+|[-.]+$/g, "").slice(0, 80);
  return `${["nos", plain(cluster), plain(what), iso(at).replaceAll(":", "-")].filter(Boolean).join("-")}.${ending}`;
}
