// Details of the selection, beside the page on wide screens and over it on narrow ones.
import { useEffect, useRef, type ReactNode } from "react";
import { IconButton } from "./controls";

interface Props {
  title: ReactNode;
  label: string;
  onClose: () => void;
  children: ReactNode;
}

export function SidePanel({ title, label, onClose, children }: Props): ReactNode {
  const element = useRef<HTMLElement>(null);
  const opener = useRef<Element | null>(null);
  useEffect(() => {
    opener.current = document.activeElement;
    element.current?.focus({ preventScroll: true });
    return () => {
      if (opener.current instanceof HTMLElement) opener.current.focus({ preventScroll: true });
    };
  }, []);
  return (
    <aside
      ref={element}
      className="side"
      aria-label={label}
      tabIndex={-1}
      onKeyDown={(event) => {
        if (event.key === "Escape") onClose();
      }}
    >
      <div className="side-head">
        <h2 className="side-title">{title}</h2>
        <IconButton label="Close" icon="close" onPress={onClose} />
      </div>
      <div className="side-body">{children}</div>
    </aside>
  );
}

/** Name and value pairs. */
export function Facts({ children }: { children: ReactNode }): ReactNode {
  return <dl className="facts">{children}</dl>;
}

export function Fact({ name, children }: { name: string; children: ReactNode }): ReactNode {
  return (
    <div className="fact">
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

/** A share as a bar with its number; `null` means not measured. */
export function Meter({ label, share, text, tone }: { label: string; share: number | null; text: string; tone?: string }): ReactNode {
  const width = `${Math.max(0, Math.min(1, share ?? 0)) * 100}%`;
  return (
    <span className="meter" data-tone={tone} title={label}>
      <span className="meter-track" aria-hidden="true">
        <span className="meter-fill" style={{ width }} />
      </span>
      <span className="meter-text">{text}</span>
    </span>
  );
}
