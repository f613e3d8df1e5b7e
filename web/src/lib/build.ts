// Finds out after an upgrade of nos that the server has other files than the ones that run here.

const triedKey = "nos.reloaded";

/** The file that a page starts with; its name contains a hash of all of them. */
export function entryOf(html: string): string {
  return /<script[^>]*\bsrc="(?:[^"]*\/)?([^"/]+)"/.exec(html)?.[1] ?? "";
}

const own = (): string => entryOf(document.querySelector<HTMLScriptElement>("script[type=module][src]")?.outerHTML ?? "");

/** The server's entry file if it is another one, else "". A server that does not answer has no other one. */
export async function newBuild(): Promise<string> {
  try {
    const response = await fetch(new URL("./", document.baseURI), { cache: "no-store", credentials: "same-origin" });
    const there = response.ok ? entryOf(await response.text()) : "";
    return there !== "" && there !== own() ? there : "";
  } catch {
    return "";
  }
}

/** Loads the page again if the server has another build: true if it does. Once for each build, so that no cache between can make it loop. */
export async function reloadIfNew(): Promise<boolean> {
  const there = await newBuild();
  if (!there || sessionStorage.getItem(triedKey) === there) return false;
  sessionStorage.setItem(triedKey, there);
  window.location.reload();
  return true;
}
