import { useState, type FormEvent, type ReactNode } from "react";
import { Button } from "react-aria-components";
import { token } from "../api/client";

const backKey = "nos.back";

/** Back from the identity provider: opens the page requested before. */
export function goBack(): void {
  const back = sessionStorage.getItem(backKey);
  sessionStorage.removeItem(backKey);
  if (back && location.hash === "") history.replaceState(null, "", back);
}

const commands = [
  "kubectl create serviceaccount gpu-viewer -n default",
  "kubectl create clusterrolebinding gpu-viewer \\",
  "  --clusterrole=view --serviceaccount=default:gpu-viewer",
  "kubectl create token gpu-viewer -n default",
].join("\n");

/**
 * Sends the browser to the identity provider (`place`), or asks for a token. The token is kept in this tab only and
 * sent to this server only.
 */
export function SignIn({ why, place, onToken }: { why: string; place: string; onToken: () => void }): ReactNode {
  const [value, setValue] = useState("");
  const tried = token.get() !== "";
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    token.set(value.trim());
    onToken();
  };
  return (
    <main className="signin">
      <form className="panel signin-form" onSubmit={submit}>
        <h1>nos</h1>
        {place && (
          <>
            <a className="button primary" href={place} onClick={() => sessionStorage.setItem(backKey, location.hash)}>
              Sign in
            </a>
            <p className="muted">Or with a token, which this tab keeps until it is closed.</p>
          </>
        )}
        {!place && <p>Sign in with a token of your cluster. This tab keeps it until it is closed.</p>}
        <label className="field">
          Kubernetes token
          <input
            type="password" value={value} onChange={(event) => setValue(event.target.value)} required autoFocus={!place}
            autoComplete="off" spellCheck={false}
          />
        </label>
        {tried && (
          <p className="notice" role="alert">
            {why}
          </p>
        )}
        <Button type="submit" className={place ? "button" : "button primary"} isDisabled={value.trim() === ""}>
          {place ? "Sign in with the token" : "Sign in"}
        </Button>
        <p className="muted">
          A token shows the namespaces in which its account may list pods; one that may list pods in all namespaces shows
          the whole cluster. These lines make an account that may read all namespaces, and its token for an hour:
        </p>
        <pre className="code signin-lines" tabIndex={0} aria-label="Commands that make a token">{commands}</pre>
      </form>
    </main>
  );
}
