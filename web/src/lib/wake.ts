// Keeps the screen on while a page is shown, where the browser can.
interface Lock {
  release: () => Promise<void>;
}
interface WithWakeLock {
  wakeLock?: { request: (type: "screen") => Promise<Lock> };
}

/** Returns the function that ends it. The browser drops the lock of a hidden page, so it is taken again. */
export function keepAwake(): () => void {
  const { wakeLock } = navigator as WithWakeLock;
  if (!wakeLock) return () => undefined;
  let ended = false;
  let lock: Lock | undefined;
  const take = (): void => {
    if (document.hidden || ended) return;
    wakeLock.request("screen").then(
      (taken) => {
        if (ended) void taken.release();
        else lock = taken;
      },
      () => undefined, // a low battery, or a policy
    );
  };
  take();
  document.addEventListener("visibilitychange", take);
  return () => {
    ended = true;
    document.removeEventListener("visibilitychange", take);
    void lock?.release();
  };
}
