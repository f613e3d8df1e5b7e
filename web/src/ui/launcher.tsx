// Opens the search: a button, Ctrl+K or Cmd+K anywhere, and "/" outside text fields.
import { lazy, Suspense, useEffect, useMemo, useState, type ReactNode } from "react";
import { Button } from "react-aria-components";
import type { Entry } from "../lib/find";
import { Icon } from "./icons";
import { isTyping } from "./typing";

const load = (): Promise<typeof import("./palette")> => import("./palette");
const Palette = lazy(load);
export const loadPalette = load;

const isMac = /Mac|iPhone|iPad/.test(navigator.platform);

export function Launcher({ actions = none }: { actions?: readonly Entry[] }): ReactNode {
  const [open, setOpen] = useState(false);
  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      const control = (event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey && event.key.toLowerCase() === "k";
      const slash = event.key === "/" && !event.ctrlKey && !event.metaKey && !event.altKey && !isTyping(event.target);
      if ((!control && !slash) || document.querySelector("[role=dialog], [role=alertdialog]")) return;
      event.preventDefault();
      setOpen(true);
    };
    document.addEventListener("keydown", onKey);
    return () => document.removeEventListener("keydown", onKey);
  }, []);
  const close = useMemo(() => () => setOpen(false), []);
  return (
    <>
      <Button className="launcher" aria-keyshortcuts="Control+K /" onPress={() => setOpen(true)}>
        <Icon name="search" />
        <span className="launcher-text">Search</span>
        <kbd>{isMac ? "⌘K" : "Ctrl K"}</kbd>
      </Button>
      {open && (
        <Suspense fallback={null}>
          <Palette actions={actions} onClose={close} />
        </Suspense>
      )}
    </>
  );
}

const none: readonly Entry[] = [];
