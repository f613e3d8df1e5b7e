// Placeholders for missing data: loading, empty, failed, forbidden.
import { Component, type ReactNode } from "react";
import { Button } from "react-aria-components";
import type { ApiError } from "../api/client";
import { reloadIfNew } from "../lib/build";
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

/** Text to copy. */
export function Example({ text }: { text: string }): ReactNode {
  return <pre className="code example" tabIndex={0} aria-label="Example">{text}</pre>;
}

export function Loading({ what, rows = 4 }: { what: string; rows?: number }): ReactNode {
  return (
    <div className="state loading" role="status">
      <span className="hidden">Loading {what}</span>
      {Array.from({ length: rows }, (_, row) => (
        <div key={row} className="skeleton" aria-hidden="true">
          <span className="skeleton-title" />
          <span className="skeleton-line" />
        </div>
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
          An administrator of the cluster can grant it. See also the <a href="#/workloads">workloads of your namespaces</a>.
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

/** Browsers' words for a file of the page that did not come. */
const notLoaded = /dynamically imported module|module script failed|unable to preload/i;

/** Shows an error for a page that fails to render; the rest of the dashboard keeps working. */
export class Boundary extends Component<{ children: ReactNode }, { message: string }> {
  override state = { message: "" };

  override componentDidCatch(error: unknown): void {
    // After an upgrade the server has files of other names.
    if (error instanceof Error && notLoaded.test(error.message)) void reloadIfNew();
  }

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
        <p className="muted">
          {notLoaded.test(this.state.message)
            ? "A file of this page did not come: the server cannot be reached. The other pages may still work."
            : this.state.message}
        </p>
        <Button className="button" onPress={() => window.location.reload()}>
          Reload
        </Button>
      </div>
    );
  }
}
