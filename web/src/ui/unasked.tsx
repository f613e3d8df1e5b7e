// A notice that some namespaces have not been checked yet, and a field to check one.
import { useState, type ReactNode } from "react";
import { Button } from "react-aria-components";
import { useCluster } from "../lib/data";
import { counted } from "../lib/format";
import { setParams } from "../lib/route";
import { Icon } from "./icons";

export function Unasked(): ReactNode {
  const { session } = useCluster();
  const [name, setName] = useState("");
  const unasked = session.unasked_namespaces ?? 0;
  if (unasked === 0) return null;
  return (
    <form
      className="notice unasked"
      onSubmit={(event) => {
        event.preventDefault();
        if (name.trim()) setParams({ ns: name.trim() });
      }}
    >
      <Icon name="alert" />
      <span role="status">
        {counted(unasked, "namespace")} more {unasked === 1 ? "has" : "have"} not been asked about yet: what is yours there is
        missing.
      </span>
      <label className="field">
        Ask about
        <input
          maxLength={63} spellCheck={false} autoComplete="off" placeholder="namespace" value={name}
          onChange={(event) => setName(event.target.value)}
        />
      </label>
      <Button type="submit" className="button small">Ask</Button>
    </form>
  );
}
