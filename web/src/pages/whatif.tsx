// Shows whether and where a pod would run, and at what cost, before it is submitted; submits it.
import { useMemo, useState, type ReactNode } from "react";
import { Button, Dialog, DialogTrigger, Heading, Modal, ModalOverlay } from "react-aria-components";
import { api, ApiError } from "../api/client";
import type { WhatIf } from "../api/types";
import { useCluster, useResource } from "../lib/data";
import { podLike, podText } from "../lib/podtext";
import { href } from "../lib/route";
import { profilesOf, wordsOf } from "../lib/whatif";
import { Choice } from "../ui/controls";
import { Icon } from "../ui/icons";

const longest = 256 * 1024;

type Outcome =
  | { kind: "none" }
  | { kind: "asking" }
  | { kind: "answer"; answer: WhatIf; of: string }
  | { kind: "failed"; message: string }
  | { kind: "submitted"; namespace: string; name: string };

const messageOf = (cause: unknown): string => (cause instanceof ApiError ? cause.message : String(cause));

export default function WhatIfPage(): ReactNode {
  const { name, session } = useCluster();
  const [text, setText] = useState(() => podText(session.namespaces?.[0] ?? "default", "try-1", { "nvidia.com/mig-1g.10gb": 1, cpu: 2, memory: 8192 }));
  const [outcome, setOutcome] = useState<Outcome>({ kind: "none" });
  const run = async (): Promise<void> => {
    setOutcome({ kind: "asking" });
    try {
      setOutcome({ kind: "answer", answer: await api.whatIf(name, text), of: text });
    } catch (cause) {
      setOutcome({ kind: "failed", message: messageOf(cause) });
    }
  };
  const submit = async (): Promise<void> => {
    setOutcome({ kind: "asking" });
    try {
      setOutcome({ kind: "submitted", ...(await api.submit(name, text)) });
    } catch (cause) {
      setOutcome({ kind: "failed", message: messageOf(cause) });
    }
  };
  const tooLong = text.length > longest;
  return (
    <div className="whatif">
      <section className="panel whatif-pod" aria-label="The pod">
        <Starters onText={setText} />
        <label className="field grow">
          A pod, as YAML or JSON
          <textarea
            className="code" spellCheck={false} rows={18} value={text} aria-invalid={tooLong}
            onChange={(event) => setText(event.target.value)}
            onKeyDown={(event) => {
              if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) void run();
            }}
          />
        </label>
        <div className="row">
          <Button className="button primary" onPress={() => void run()} isDisabled={text.trim() === "" || tooLong || outcome.kind === "asking"}>
            What if?
          </Button>
          <SubmitButton allowed={session.can.submit} disabled={text.trim() === "" || tooLong || outcome.kind === "asking"} cluster={name} onSubmit={() => void submit()} />
          <span className="muted small">{tooLong ? "This is longer than a pod can be." : "Ctrl+Enter simulates it. A simulation changes nothing."}</span>
        </div>
      </section>
      <section className="panel whatif-answer" aria-live="polite" aria-label="The answer">
        <Answer outcome={outcome} current={text} />
      </section>
    </div>
  );
}

function Starters({ onText }: { onText: (text: string) => void }): ReactNode {
  const { name, session } = useCluster();
  const pending = useResource(`starters|${name}`, (signal) => api.workloads(name, { state: "pending", limit: 50 }, signal));
  const gpus = useResource(`profiles|${name}`, (signal) => api.gpus(name, undefined, undefined, signal));
  const profiles = useMemo(() => profilesOf(gpus.data), [gpus.data]);
  const pods = pending.data?.pods ?? [];
  return (
    <div className="row wrap">
      <span className="muted">Start from</span>
      {profiles.length > 0 && (
        <Choice
          label="A slice" value="" prefix="a slice" options={profiles}
          onChange={(profile) => onText(podText(session.namespaces?.[0] ?? "default", "try-1", { [`nvidia.com/mig-${profile}`]: 1, cpu: 2, memory: 8192 }))}
        />
      )}
      <Button className="button" onPress={() => onText(podText(session.namespaces?.[0] ?? "default", "try-1", { "nvidia.com/gpu": 1, cpu: 8, memory: 32768 }))}>
        a whole GPU
      </Button>
      {pods.length > 0 && (
        <Choice
          label="A waiting pod" value="" prefix="a waiting pod"
          options={pods.map((pod) => ({ id: pod.uid, label: `${pod.namespace}/${pod.name}` }))}
          onChange={(uid) => {
            const pod = pods.find((each) => each.uid === uid);
            if (pod) onText(podLike(pod));
          }}
        />
      )}
    </div>
  );
}

function SubmitButton({ allowed, disabled, cluster, onSubmit }: { allowed: boolean; disabled: boolean; cluster: string; onSubmit: () => void }): ReactNode {
  if (!allowed) return <span className="muted small">You may simulate pods here. Creating one needs the permission to create pods.</span>;
  return (
    <DialogTrigger>
      <Button className="button" isDisabled={disabled}>Submit…</Button>
      <ModalOverlay className="overlay" isDismissable>
        <Modal className="modal">
          <Dialog className="dialog" role="alertdialog">
            {({ close }) => (
              <>
                <Heading slot="title">Submit this pod?</Heading>
                <p>It is created in the cluster {cluster} in your name, and runs as soon as it can be scheduled.</p>
                <div className="row end">
                  <Button className="button" onPress={close} autoFocus>Not now</Button>
                  <Button
                    className="button primary"
                    onPress={() => {
                      close();
                      onSubmit();
                    }}
                  >
                    Submit
                  </Button>
                </div>
              </>
            )}
          </Dialog>
        </Modal>
      </ModalOverlay>
    </DialogTrigger>
  );
}

function Answer({ outcome, current }: { outcome: Outcome; current: string }): ReactNode {
  switch (outcome.kind) {
    case "none":
      return (
        <div className="state">
          <p className="state-title">See it before it happens</p>
          <p className="muted">
            Paste a pod, or start from one. The answer says whether it would run now, on which node, which GPUs would be
            partitioned for it and which pods would be evicted.
          </p>
        </div>
      );
    case "asking":
      return <p className="muted">Simulating…</p>;
    case "failed":
      return (
        <p className="notice bad" role="alert">
          <Icon name="alert" /> {outcome.message}
        </p>
      );
    case "submitted":
      return (
        <div className="state">
          <p className="state-title good-text"><Icon name="check" /> Submitted</p>
          <p><a href={href("workloads", { pod: `${outcome.namespace}/${outcome.name}` })}>{outcome.namespace}/{outcome.name}</a></p>
        </div>
      );
    case "answer":
      return <Verdict answer={outcome.answer} stale={outcome.of !== current} />;
  }
}

function Verdict({ answer, stale }: { answer: WhatIf; stale: boolean }): ReactNode {
  return (
    <>
      {stale && <p className="notice">The text has changed since; simulate it again.</p>}
      <h2 className={answer.fits ? "verdict good-text" : "verdict warn-text"}>
        <Icon name={answer.fits ? "check" : "alert"} />
        {answer.fits ? (answer.node ? `It would run on ${answer.node}` : "It would run") : "It would wait"}
      </h2>
      <div className="decision-columns">
        <Things title="Would be partitioned" things={answer.would_partition} none="none" />
        <Things title="Would be evicted" things={answer.would_evict} none="none" />
      </div>
      <pre className="code">{answer.text}</pre>
      {answer.steps.length > 0 && (
        <>
          <h3>How that was found</h3>
          <ol className="steps">
            {answer.steps.map((step, place) => (
              <li key={place}>{wordsOf(step)}</li>
            ))}
          </ol>
        </>
      )}
    </>
  );
}

function Things({ title, things, none }: { title: string; things: unknown[]; none: string }): ReactNode {
  return (
    <div>
      <h3>{title}</h3>
      {things.length === 0 ? (
        <p className="muted">{none}</p>
      ) : (
        <ul className="names">
          {things.map((thing, place) => (
            <li key={place}>{wordsOf(thing)}</li>
          ))}
        </ul>
      )}
    </div>
  );
}
