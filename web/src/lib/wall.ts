// The way to the wall and back.
import { href } from "./route";

let back = "";

/** Opens the wall, on the full screen where the browser allows it. */
export function openWall(): void {
  back = window.location.hash;
  window.location.hash = href("wall");
  document.documentElement.requestFullscreen?.().catch(() => undefined);
}

/** Returns to the page before. */
export function leaveWall(): void {
  if (!window.location.hash.startsWith("#/wall")) return; // it is left already
  if (document.fullscreenElement) void document.exitFullscreen().catch(() => undefined);
  window.location.hash = back || href("overview");
  back = "";
}
