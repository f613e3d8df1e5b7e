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
          <code>kubectl create token ACCOUNT -n NAMESPACE</code> makes one.
        </p>
      </form>
    </main>
  );
}
