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
        {counted(unasked, "more namespace")} {unasked === 1 ? "is" : "are"} not checked yet: pods of yours there are missing.
      </span>
      <label className="field">
        Check a namespace
        <input
          maxLength={63} spellCheck={false} autoComplete="off" placeholder="namespace" value={name}
          onChange={(event) => setName(event.target.value)}
        />
      </label>
      <Button type="submit" className="button small">Check</Button>
    </form>
  );
}
