// The double answers as the description of the API says.
import { readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Double } from "../double/server";

interface Schema {
  $ref?: string;
  type?: string | string[];
  enum?: unknown[];
  const?: unknown;
  properties?: Record<string, Schema>;
  required?: string[];
  items?: Schema;
  additionalProperties?: Schema | boolean;
}

interface Description {
  paths: Record<string, { get?: { responses: Record<string, { content?: Record<string, { schema: Schema }> }> } }>;
  components: { schemas: Record<string, Schema> };
}

const description = JSON.parse(readFileSync(new URL("../../../src/telemetryserver/openapi.json", import.meta.url), "utf8")) as Description;

const typeOf = (value: unknown): string =>
  value === null ? "null" : Array.isArray(value) ? "array" : Number.isInteger(value) ? "integer" : typeof value;

/** What is wrong with a value; the places are as in JavaScript. */
function faults(schema: Schema, value: unknown, place: string): string[] {
  if (schema.$ref) return faults(description.components.schemas[schema.$ref.split("/").at(-1)!]!, value, place);
  const type = typeOf(value);
  const types = schema.type === undefined ? [] : [schema.type].flat();
  if (types.length > 0 && !types.includes(type) && !(type === "integer" && types.includes("number"))) return [`${place}: ${type} instead of ${types.join(" or ")}`];
  if (schema.enum && !schema.enum.includes(value)) return [`${place}: ${String(value)} is none of ${schema.enum.join(", ")}`];
  if (Array.isArray(value)) return schema.items ? value.flatMap((each, at) => faults(schema.items!, each, `${place}[${at}]`)) : [];
  if (type !== "object") return [];
  const members = value as Record<string, unknown>;
  const found = (schema.required ?? []).filter((name) => members[name] === undefined).map((name) => `${place}.${name}: missing`);
  for (const [name, member] of Object.entries(members)) {
    const own = schema.properties?.[name] ?? (typeof schema.additionalProperties === "object" ? schema.additionalProperties : undefined);
    if (own && member !== undefined) found.push(...faults(own, member, `${place}.${name}`));
  }
  return found;
}

describe("the double", () => {
  const double = new Double({ size: 0.25 });
  let url = "";
  beforeAll(async () => {
    url = await double.start();
  });
  afterAll(() => double.stop());

  const now = double.answers.now;
  const targets: Record<string, string> = {
    session: "session", overview: "overview", gpus: "gpus", workloads: "workloads?limit=1000", decisions: "decisions?limit=1000", quotas: "quotas", stories: "stories?limit=1000",
    jobs: "jobs", pools: "pools", alerts: "alerts", history: `history?from=${now - 3_600_000}&to=${now}`, cost: `cost?from=${now - 7_200_000}&by=workload`, "cost-forecast": "cost-forecast", savings: "savings",
    series: `series?metric=allocated&subject=cluster&from=${now - 3_600_000}&to=${now}&points=10`,
  };
  for (const by of ["namespace", "quota", "pool", "model", "category", "day", "hour", "job", "pod"]) targets[`cost by ${by}`] = `cost?from=${now - 7_200_000}&by=${by}`;

  for (const [name, target] of Object.entries(targets)) {
    it(`answers ${name} as described`, async () => {
      const answer = (await (await fetch(`${url}api/v1/${target}`)).json()) as unknown;
      const schema = description.paths[`/api/v1/${target.split("?")[0]}`]?.get?.responses["200"]?.content?.["application/json"]?.schema;
      expect(schema).toBeDefined();
      expect(faults(schema!, answer, name).slice(0, 10)).toEqual([]);
    });
  }

  it("would be found out", () => {
    const schema = description.components.schemas.CostForecast!;
    expect(faults(schema, { cluster: "a" }, "x")).toContain("x.month: missing");
    expect(faults(schema, { from: "yesterday" }, "x")).toContain("x.from: string instead of integer");
  });
});
