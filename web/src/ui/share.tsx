// A link to what the page shows, to copy.
import { useRef, useState, type ReactNode } from "react";
import { Button, Checkbox, Dialog, DialogTrigger, Heading, Popover } from "react-aria-components";
import { useCluster, useNow, useRange } from "../lib/data";
import { useRoute } from "../lib/route";
import { canFix, sharedHash } from "../lib/share";
import { Icon } from "./icons";

export function ShareButton(): ReactNode {
  return (
    <DialogTrigger>
      <Button className="icon-button" aria-label="Link to this page">
        <Icon name="link" />
      </Button>
      <Popover className="popover share" placement="bottom end">
        <Dialog className="share-dialog">
          <Heading slot="title" level={2}>Link to this page</Heading>
          <Body />
        </Dialog>
      </Popover>
    </DialogTrigger>
  );
}

function Body(): ReactNode {
  const route = useRoute();
  const { name } = useCluster();
  const now = useNow(10_000);
  const { from, to } = useRange();
  const field = useRef<HTMLInputElement>(null);
  // The times when the box was ticked: a link that changed as time passes would lose its selection.
  const [fixed, setFixed] = useState<{ from: number; to: number; now: number }>();
  const [copied, setCopied] = useState<"" | "done" | "by hand">("");
  const link = new URL(sharedHash(route, name, canFix(route.page) ? fixed : undefined), window.location.href).href;
  const copy = async (): Promise<void> => {
    try {
      await navigator.clipboard.writeText(link);
      setCopied("done");
    } catch {
      // Browsers give the clipboard only to pages that came by https or from this machine.
      field.current?.select();
      setCopied("by hand");
    }
  };
  return (
    <>
      <p className="muted small">It has the page, the cluster, filters and order. Readers see what they are allowed to.</p>
      {canFix(route.page) && (
        <Checkbox className="check" isSelected={fixed !== undefined} onChange={(on) => { setFixed(on ? { from, to, now } : undefined); setCopied(""); }}>
          <span className="check-box" aria-hidden="true"><Icon name="check" /></span>
          Show what is shown now, also later
        </Checkbox>
      )}
      <div className="row">
        <input ref={field} className="share-link code" aria-label="Link" readOnly value={link} onFocus={(event) => event.target.select()} />
        <Button className="button primary" onPress={() => void copy()} autoFocus>Copy</Button>
      </div>
      <p className="small" role="status">
        {copied === "done" ? "Copied." : copied === "by hand" ? "The browser does not allow it here: press Ctrl+C." : ""}
      </p>
    </>
  );
}
