// Pods as text, as a starting point on the page What if.
import type { Pod } from "../api/types";

/** A scalar that YAML parses back to exactly this text, whatever it contains. */
export function quoted(text: string): string {
  const plain = /^[a-z][a-z0-9./-]*$/.test(text) && !/^(true|false|null|yes|no|on|off|y|n)$/.test(text);
  return plain ? text : JSON.stringify(text);
}

export function podText(namespace: string, name: string, requests: Record<string, number>, priority = 0): string {
  const limits = Object.entries(requests).map(([resource, amount]) => {
    const value = resource === "memory" ? `${amount}Mi` : String(amount);
    return `        ${quoted(resource)}: ${quoted(value)}`;
  });
  return [
    "apiVersion: v1",
    "kind: Pod",
    "metadata:",
    `  name: ${quoted(name)}`,
    `  namespace: ${quoted(namespace)}`,
    "spec:",
    "  schedulerName: nos-scheduler",
    ...(priority ? [`  priority: ${priority}`] : []),
    "  containers:",
    "  - name: main",
    "    image: nvcr.io/nvidia/cuda:12.4.1-base-ubuntu22.04",
    "    resources:",
    "      limits:",
    ...limits,
    "",
  ].join("\n");
}

/** A copy of a pod under a new name. */
export function podLike(pod: Pod): string {
  return podText(pod.namespace, `${pod.name.slice(0, 240)}-again`, pod.requests, pod.priority);
}
