import { useState, type FormEvent, type ReactNode } from "react";
import { Button } from "react-aria-components";
import { token } from "../api/client";

/** Asks for a Kubernetes token. It is kept by this tab alone and sent to this server alone. */
export function SignIn({ why, onToken }: { why: string; onToken: () => void }): ReactNode {
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
        <p>Sign in with a token of your cluster. This tab keeps it until it is closed.</p>
        <label className="field">
          Kubernetes token
          <input
            type="password" value={value} onChange={(event) => setValue(event.target.value)} required autoFocus
            autoComplete="off" spellCheck={false}
          />
        </label>
        {tried && (
          <p className="notice" role="alert">
            {why}
          </p>
        )}
        <Button type="submit" className="button primary" isDisabled={value.trim() === ""}>
          Sign in
        </Button>
        <p className="muted">
          <code>kubectl create token ACCOUNT -n NAMESPACE</code> makes one.
        </p>
      </form>
    </main>
  );
}
