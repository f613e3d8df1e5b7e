// Placeholders for missing data: loading, empty, failed, forbidden.
import { Component, type ReactNode } from "react";
import { Button } from "react-aria-components";
import type { ApiError } from "../api/client";
import type { Resource } from "../lib/data";
import { Icon } from "./icons";

export function Empty({ title, children }: { title: string; children?: ReactNode }): ReactNode {
  return (
    <div className="state">
      <p className="state-title">{title}</p>
      {children && <div className="muted">{children}</div>}
    </div>
  );
}

export function Loading({ what, rows = 4 }: { what: string; rows?: number }): ReactNode {
  return (
    <div className="state loading" role="status">
      <span className="hidden">Loading {what}</span>
      {Array.from({ length: rows }, (_, row) => (
        <div key={row} className="skeleton" aria-hidden="true" />
      ))}
    </div>
  );
}

export function Failed({ error, what, retry }: { error: ApiError; what: string; retry?: () => void }): ReactNode {
  const forbidden = error.status === 403;
  return (
    <div className="state" role="alert">
      <p className="state-title">
        <Icon name="alert" /> {forbidden ? `You may not see ${what}` : `Cannot show ${what}`}
      </p>
      <p className="muted">{error.message}</p>
      {forbidden && (
        <p className="muted">
          Whoever administers the cluster can grant it. Meanwhile: <a href="#/workloads">workloads of your namespaces</a>.
        </p>
      )}
      {retry && (
        <Button className="button" onPress={retry}>
          Try again
        </Button>
      )}
    </div>
  );
}

interface LoadedProps<T> {
  resource: Resource<T>;
  what: string;
  rows?: number;
  children: (data: T) => ReactNode;
}

/** The data once loaded; an error is shown above data that is no longer current. */
export function Loaded<T>({ resource, what, rows, children }: LoadedProps<T>): ReactNode {
  const { data, error, loading, reload } = resource;
  if (data === undefined) {
    if (error) return <Failed error={error} what={what} retry={reload} />;
    return loading ? <Loading what={what} rows={rows} /> : null;
  }
  return (
    <>
      {error && (
        <p className="notice" role="alert">
          <Icon name="alert" /> Not up to date: {error.message}
        </p>
      )}
      {children(data)}
    </>
  );
}

/** Shows an error for a page that fails to render; the rest of the dashboard keeps working. */
export class Boundary extends Component<{ children: ReactNode }, { message: string }> {
  override state = { message: "" };

  static getDerivedStateFromError(error: unknown): { message: string } {
    return { message: error instanceof Error ? error.message : String(error) };
  }

  override render(): ReactNode {
    if (this.state.message === "") return this.props.children;
    return (
      <div className="state" role="alert">
        <p className="state-title">
          <Icon name="alert" /> This page cannot be drawn
        </p>
        <p className="muted">{this.state.message}</p>
        <Button className="button" onPress={() => window.location.reload()}>
          Load anew
        </Button>
      </div>
    );
  }
}
