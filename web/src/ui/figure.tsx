// A figure with its name and a note.
import type { ReactNode } from "react";

interface FigureProps {
  name: string;
  value: string;
  note: string;
  more?: string;
  href?: string;
  tone?: string;
}

export function Figure({ name, value, note, more, href: link, tone }: FigureProps): ReactNode {
  return (
    <div className="figure" data-tone={tone}>
      <div className="figure-name">{link ? <a href={link}>{name}</a> : name}</div>
      <div className="figure-value">{value}</div>
      <div className="figure-note">{note}</div>
      {more && <div className="figure-note figure-more">{more}</div>}
    </div>
  );
}
