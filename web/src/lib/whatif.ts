// Words for the content of the page What if.
/** Items in an answer are texts or small objects. */
export function wordsOf(thing: unknown): string {
  if (thing === null || typeof thing !== "object") return String(thing);
  const { namespace, name, node, gpu, make, destroy, ...rest } = thing as Record<string, unknown>;
  const list = (value: unknown): string => (Array.isArray(value) ? value.map(wordsOf).join(", ") : wordsOf(value));
  if (typeof name === "string") return typeof namespace === "string" ? `${namespace}/${name}` : name;
  const parts: string[] = [];
  if (node !== undefined) parts.push(`${wordsOf(node)}${gpu === undefined ? "" : ` · GPU ${wordsOf(gpu)}`}`);
  if (make !== undefined && list(make)) parts.push(`create ${list(make)}`);
  if (destroy !== undefined && list(destroy)) parts.push(`destroy ${list(destroy)}`);
  for (const [key, value] of Object.entries(rest)) parts.push(`${key} ${list(value)}`);
  return parts.join(": ").replace(/: (?=destroy)/, ", ");
}
