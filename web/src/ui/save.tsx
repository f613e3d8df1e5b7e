// Buttons that save a table as CSV, or a chart or map as a picture.
import { useState, type ReactNode } from "react";
import { Button, Menu, MenuItem, MenuTrigger, Popover } from "react-aria-components";
import { fileName } from "../lib/csv";
import { useAt, useCluster } from "../lib/data";
import { saveCsv, savePicture } from "../lib/save";
import { Icon } from "./icons";

/** Names a file after the cluster, its content and the moment that is shown. */
function useFileName(): (what: string, ending: string) => string {
  const { name, live } = useCluster();
  const at = useAt();
  return (what, ending) => fileName(name, what, at ?? live.now(), ending);
}

type Made<T> = T | Promise<T>;

function useSaving(): { failed: string; busy: boolean; run: (save: () => Made<void>) => void } {
  const [failed, setFailed] = useState("");
  const [busy, setBusy] = useState(false);
  const run = (save: () => Made<void>): void => {
    setBusy(true);
    setFailed("");
    Promise.resolve()
      .then(save)
      .catch((cause: unknown) => setFailed(cause instanceof Error ? cause.message : String(cause)))
      .finally(() => setBusy(false));
  };
  return { failed, busy, run };
}

/** `what`: what the table lists, such as "pods". `small`: only the icon. */
export function CsvButton({ what, small, make }: { what: string; small?: boolean; make: () => Made<string> }): ReactNode {
  const nameOf = useFileName();
  const { failed, busy, run } = useSaving();
  const label = `Save ${what} as CSV`;
  return (
    <>
      <Button
        className={small ? "icon-button save-button" : "button"} aria-label={label} isDisabled={busy}
        onPress={() => run(async () => saveCsv(nameOf(what, "csv"), await make()))}
      >
        <Icon name="save" />
        {!small && (busy ? "Loading…" : "CSV")}
      </Button>
      {failed && <span className="bad-text small" role="alert">Not saved: {failed}</span>}
    </>
  );
}

/** A menu at a chart: its picture, its values. */
export function SaveMenu({ what, picture, csv }: { what: string; picture: () => HTMLCanvasElement | undefined; csv: () => string }): ReactNode {
  const nameOf = useFileName();
  const { failed, run } = useSaving();
  const save = (kind: string): void =>
    run(async () => {
      if (kind === "csv") return saveCsv(nameOf(what, "csv"), csv());
      const canvas = picture();
      if (canvas) await savePicture(nameOf(what, "png"), canvas);
    });
  return (
    <MenuTrigger>
      <Button className="icon-button save-button" aria-label={`Save ${what}${failed ? `; failed: ${failed}` : ""}`}>
        <Icon name={failed ? "alert" : "save"} />
      </Button>
      <Popover className="popover" placement="bottom end">
        <Menu className="list" onAction={(key) => save(String(key))}>
          <MenuItem id="png" className="list-item">Picture (PNG)</MenuItem>
          <MenuItem id="csv" className="list-item">Values (CSV)</MenuItem>
        </Menu>
      </Popover>
    </MenuTrigger>
  );
}

export function PictureButton({ what, picture }: { what: string; picture: () => HTMLCanvasElement | undefined }): ReactNode {
  const nameOf = useFileName();
  const { failed, busy, run } = useSaving();
  return (
    <>
      <Button
        className="button" aria-label={`Save ${what} as PNG`} isDisabled={busy}
        onPress={() => run(async () => {
          const canvas = picture();
          if (canvas) await savePicture(nameOf(what, "png"), canvas);
        })}
      >
        <Icon name="save" /> PNG
      </Button>
      {failed && <span className="bad-text small" role="alert">Not saved: {failed}</span>}
    </>
  );
}
