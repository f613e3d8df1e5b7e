// Light, dark, or the system's theme. The browser stores the choice; links do not contain it.
import { useSyncExternalStore } from "react";

export type Theme = "system" | "light" | "dark";

const key = "nos.theme";
const system = window.matchMedia("(prefers-color-scheme: dark)");
const listeners = new Set<() => void>();
let chosen: Theme = "system";

function tell(): void {
  document.documentElement.dataset.theme = isDark() ? "dark" : "light";
  for (const each of listeners) each();
}

function isDark(): boolean {
  return chosen === "system" ? system.matches : chosen === "dark";
}

export function startTheme(): void {
  try {
    const kept = localStorage.getItem(key);
    if (kept === "light" || kept === "dark") chosen = kept;
  } catch {
    // Storage may be forbidden; then the system's theme is used.
  }
  system.addEventListener("change", tell);
  tell();
}

export function setTheme(theme: Theme): void {
  chosen = theme;
  try {
    if (theme === "system") localStorage.removeItem(key);
    else localStorage.setItem(key, theme);
  } catch {
    // Storage may be forbidden; then the choice lasts until the page is closed.
  }
  tell();
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export const useTheme = (): Theme => useSyncExternalStore(subscribe, () => chosen);
export const useDark = (): boolean => useSyncExternalStore(subscribe, isDark);
