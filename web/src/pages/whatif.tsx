// Shows whether and where a pod would run, and at what cost, before it is submitted; submits it.
import { useEffect, useMemo, useRef, useState, type ReactNode } from "react";
import { Button, Dialog, DialogTrigger, Heading, Modal, ModalOverlay } from "react-aria-components";
import { api, ApiError } from "../api/client";
import type { Gpus, Pod, WhatIf } from "../api/types";
import { useCluster, useResource } from "../lib/data";
import { counted } from "../lib/format";
import { podLike } from "../lib/podtext";
import { href, setParams, useRoute } from "../lib/route";
import { wordsOf } from "../lib/whatif";
import {
  alternativesTo, beforeAfter, podOfWish, repartitionsOf, sizeName, sizesOf, wishName, wishOf, type Repartition, type Size, type Wish,
} from "../lib/wish";
import { Choice, Segments } from "../ui/controls";
import { Icon } from "../ui/icons";
import { Strip } from "../ui/strip";

const longest = 256 * 1024;

interface Alternative {
  wish: Wish;
  answer: WhatIf | undefined;
  /** Why there is no answer. */
  failed: string;
}

interface Asked {
  answer: WhatIf;
  of: string;
  /** Undefined: the pod was written as text. */
  wish: Wish | undefined;
  alternatives: Alternative[];
}

type Outcome =
  | { kind: "none" }
  | { kind: "asking" }
  | ({ kind: "answer" } & Asked)
  | { kind: "failed"; message: string }
  | { kind: "submitted"; namespace: string; name: string };

const messageOf = (cause: unknown): string => (cause instanceof ApiError ? cause.message : String(cause));

export default function WhatIfPage(): ReactNode {
  const { name, session } = useCluster();
  const { params } = useRoute();
  const gpus = useResource(`profiles|${name}`, (signal) => api.gpus(name, undefined, undefined, signal));
  const pending = useResource(`starters|${name}`, (signal) => api.workloads(name, { state: "pending", limit: 50 }, signal));
  const sizes = useMemo(() => sizesOf(gpus.data, pending.data?.pods ?? []), [gpus.data, pending.data]);
  const wish = wishOf(params, sizes, params.ns ?? session.namespaces?.[0] ?? "default");
  const [text, setText] = useState<string>();
  const [outcome, setOutcome] = useState<Outcome>({ kind: "none" });
  const written = text ?? podOfWish(wish);
  const round = useRef(0);
  useEffect(() => () => void round.current++, []);

  const run = async (asked: Wish | undefined = text === undefined ? wish : undefined): Promise<void> => {
    const mine = ++round.current;
    const of = asked ? podOfWish(asked) : written;
    setOutcome({ kind: "asking" });
    try {
      const answer = await api.whatIf(name, of);
      if (mine !== round.current) return;
      gpus.reload();
      const alternatives: Alternative[] = (asked ? alternativesTo(asked, sizes) : []).map((other) => ({ wish: other, answer: undefined, failed: "" }));
      const show = (): void => setOutcome({ kind: "answer", answer, of, wish: asked, alternatives: [...alternatives] });
      show();
      // One at a time: the server answers one question of a reader at once.
      for (const [place, other] of alternatives.entries()) {
        try {
          alternatives[place] = { ...other, answer: await api.whatIf(name, podOfWish(other.wish)) };
        } catch (cause) {
          alternatives[place] = { ...other, failed: messageOf(cause) };
        }
        if (mine !== round.current) return;
        show();
      }
    } catch (cause) {
      if (mine === round.current) setOutcome({ kind: "failed", message: messageOf(cause) });
    }
  };
  const submit = async (): Promise<void> => {
    round.current++;
    setOutcome({ kind: "asking" });
    try {
      setOutcome({ kind: "submitted", ...(await api.submit(name, written)) });
    } catch (cause) {
      setOutcome({ kind: "failed", message: messageOf(cause) });
    }
  };
  const tooLong = written.length > longest;
  const disabled = written.trim() === "" || tooLong || outcome.kind === "asking";
  const take = (other: Wish): void => {
    setParams(paramsOf(other));
    void run(other);
  };
  return (
    <div className="whatif">
      <section className="panel whatif-pod" aria-label="The pod">
        <div className="row wrap">
          <Segments
            label="Write the pod as" value={text === undefined ? "form" : "yaml"} options={[{ id: "form", label: "Form" }, { id: "yaml", label: "YAML" }]}
            onChange={(id) => setText(id === "yaml" ? podOfWish(wish) : undefined)}
          />
          <Waiting pods={pending.data?.pods ?? []} onPod={(pod) => (text === undefined ? setParams(paramsOfPod(pod, wish)) : setText(podLike(pod)))} />
        </div>
        {text === undefined ? (
          <Form wish={wish} sizes={sizes} onRun={() => void run()} />
        ) : (
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
        )}
        <div className="row wrap">
          <Button className="button primary" onPress={() => void run()} isDisabled={disabled}>
            What if?
          </Button>
          <SubmitButton allowed={session.can.submit} disabled={disabled} cluster={name} onSubmit={() => void submit()} />
          <span className="muted small">{tooLong ? "This is longer than a pod can be." : "Ctrl+Enter simulates it. A simulation changes nothing."}</span>
        </div>
      </section>
      <section className="panel whatif-answer" aria-live="polite" aria-label="The answer">
        <Answer outcome={outcome} current={written} gpus={gpus.data} onTake={take} />
      </section>
    </div>
  );
}

/** Values for the address; those of a usual pod stay too, so that the link means the same everywhere. */
const paramsOf = (wish: Wish): Record<string, string> => ({
  need: wish.need, size: wish.size, count: String(wish.count), gib: String(wish.gib), in: wish.namespace, name: wish.name,
  priority: wish.priority, cpu: String(wish.cpu), ram: String(wish.ram),
});

function paramsOfPod(pod: Pod, wish: Wish): Record<string, string> {
  const [size, count] = Object.entries(pod.requests).find(([resource]) => resource.startsWith("nvidia.com/")) ?? [wish.size, 1];
  return paramsOf({
    ...wish, need: size === "nvidia.com/gpu" ? "gpu" : "slice", size: size === "nvidia.com/gpu" ? wish.size : size, count, namespace: pod.namespace,
    name: `${pod.name.slice(0, 240)}-again`, priority: pod.priority ? String(pod.priority) : "",
    cpu: Math.ceil(pod.requests.cpu ?? 0), ram: Math.ceil((pod.requests.memory ?? 0) / 1024),
  });
}

function Form({ wish, sizes, onRun }: { wish: Wish; sizes: readonly Size[]; onRun: () => void }): ReactNode {
  const options = sizes.some((each) => each.id === wish.size) ? sizes : [{ id: wish.size, label: sizeName(wish.size), note: "" }, ...sizes];
  return (
    <form
      className="whatif-form"
      onSubmit={(event) => event.preventDefault()}
      onKeyDown={(event) => {
        if (event.key === "Enter" && (event.ctrlKey || event.metaKey || event.target instanceof HTMLInputElement)) {
          event.preventDefault();
          onRun();
        }
      }}
    >
      <Segments
        label="It needs" value={wish.need} onChange={(need) => setParams({ need })}
        options={[{ id: "slice", label: "Slices" }, { id: "gpu", label: "Whole GPUs" }, { id: "memory", label: "GPU memory" }]}
      />
      <div className="whatif-fields">
        {wish.need === "slice" && (
          <div className="field">
            Size
            <Choice label="Size" value={wish.size} options={options} onChange={(size) => setParams({ size })} />
          </div>
        )}
        {wish.need === "memory" ? (
          <NumberField name="gib" label="GPU memory, GiB" value={wish.gib} least={1} />
        ) : (
          <NumberField name="count" label={wish.need === "gpu" ? "GPUs of the pod" : "Slices of the pod"} value={wish.count} least={1} />
        )}
        <TextField name="in" label="Namespace" value={wish.namespace} />
        <TextField name="name" label="Name" value={wish.name} />
        <TextField name="priority" label="Priority or PriorityClass" value={wish.priority} />
        <NumberField name="cpu" label="CPU cores" value={wish.cpu} least={0} />
        <NumberField name="ram" label="Memory, GiB" value={wish.ram} least={0} />
      </div>
      {wish.need === "memory" && (
        <p className="muted small">
          The operator&apos;s webhook chooses the slice when the pod is created. A simulation has its choice if the server may act with your rights.
        </p>
      )}
    </form>
  );
}

function NumberField({ name, label, value, least }: { name: string; label: string; value: number; least: number }): ReactNode {
  // While it is typed a number may be empty.
  const [typed, setTyped] = useState<string>();
  return (
    <label className="field">
      {label}
      <input
        type="number" min={least} step={1} value={typed ?? String(value)} onBlur={() => setTyped(undefined)}
        onChange={(event) => {
          setTyped(event.target.value);
          setParams({ [name]: event.target.value });
        }}
      />
    </label>
  );
}

function TextField({ name, label, value }: { name: string; label: string; value: string }): ReactNode {
  const [typed, setTyped] = useState<string>();
  return (
    <label className="field">
      {label}
      <input
        maxLength={253} spellCheck={false} autoComplete="off" value={typed ?? value} onBlur={() => setTyped(undefined)}
        onChange={(event) => {
          setTyped(event.target.value);
          setParams({ [name]: event.target.value.trim() });
        }}
      />
    </label>
  );
}

function Waiting({ pods, onPod }: { pods: readonly Pod[]; onPod: (pod: Pod) => void }): ReactNode {
  if (pods.length === 0) return null;
  return (
    <Choice
      label="A waiting pod" value="" prefix="like a waiting pod" options={pods.map((pod) => ({ id: pod.uid, label: `${pod.namespace}/${pod.name}` }))}
      onChange={(uid) => {
        const pod = pods.find((each) => each.uid === uid);
        if (pod) onPod(pod);
      }}
    />
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

interface AnswerProps {
  outcome: Outcome;
  current: string;
  gpus: Gpus | undefined;
  onTake: (wish: Wish) => void;
}

function Answer({ outcome, current, gpus, onTake }: AnswerProps): ReactNode {
  switch (outcome.kind) {
    case "none":
      return (
        <div className="state">
          <p className="state-title">See it before it happens</p>
          <p className="muted">
            The answer says whether the pod would run now, on which node, which GPUs would be partitioned for it, which pods would
            be evicted, and how other sizes would fare.
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
      return <Verdict {...outcome} stale={outcome.of !== current} gpus={gpus} onTake={onTake} />;
  }
}

const remedyMark = /^remedy: /;

/** In a few words: "runs on n1 now", "runs on n1, 2 pods evicted", "waits". */
function wordsOfAnswer(answer: WhatIf): string {
  if (!answer.fits) return "waits";
  const evicted = answer.would_evict.length > 0 ? `, ${counted(answer.would_evict.length, "pod")} evicted` : "";
  const made = answer.would_partition.length > 0 ? `, ${counted(answer.would_partition.length, "GPU")} repartitioned` : "";
  return `runs${answer.node ? ` on ${answer.node}` : ""}${made}${evicted}`;
}

function Verdict({ answer, wish, alternatives, stale, gpus, onTake }: Asked & { stale: boolean } & Pick<AnswerProps, "gpus" | "onTake">): ReactNode {
  const remedies = answer.steps.filter((each): each is string => typeof each === "string" && remedyMark.test(each));
  const reasons = answer.steps.filter((each) => !remedies.includes(each as string));
  return (
    <>
      {stale && <p className="notice">The pod has changed since; simulate it again.</p>}
      <h2 className={answer.fits ? "verdict good-text" : "verdict warn-text"}>
        <Icon name={answer.fits ? "check" : "alert"} />
        {answer.fits ? (answer.node ? `It would run on ${answer.node}` : "It would run") : "It would wait"}
      </h2>
      {remedies.map((each, place) => (
        <p key={place} className="why remedy"><span><strong>What would help</strong> {String(each).replace(remedyMark, "")}</span></p>
      ))}
      <Changes changes={repartitionsOf(answer.would_partition)} fits={answer.fits} gpus={gpus} />
      {answer.would_evict.length > 0 && <Evicted things={answer.would_evict} />}
      {reasons.length > 0 && (
        <>
          <h3>{answer.fits ? "How that was found" : "Why"}</h3>
          <ul className="names">
            {reasons.map((each, place) => (
              <li key={place}>{wordsOf(each)}</li>
            ))}
          </ul>
        </>
      )}
      {wish && alternatives.length > 0 && <Alternatives own={{ wish, answer, failed: "" }} others={alternatives} onTake={onTake} />}
      <details className="whatif-text">
        <summary>In full, as nos explain prints it</summary>
        <pre className="code" tabIndex={0}>{answer.text}</pre>
      </details>
    </>
  );
}

function Changes({ changes, fits, gpus }: { changes: Repartition[]; fits: boolean; gpus: Gpus | undefined }): ReactNode {
  if (changes.length === 0) return fits ? <p className="muted">No GPU would be repartitioned: what it needs is free as it is.</p> : null;
  return (
    <>
      <h3>GPUs before and after</h3>
      <ul className="changes">
        {changes.slice(0, 16).map((change) => {
          const gpu = gpus?.nodes.find((each) => each.node === change.node)?.gpus.find((each) => each.index === change.gpu);
          const layouts = gpu && beforeAfter(gpu, change);
          return (
            <li key={`${change.node}/${change.gpu}`} className="change">
              <a className="change-where" href={href("map", { sel: `${change.node}/${change.gpu}` })}>{change.node} · GPU {change.gpu}</a>
              {layouts && (
                <>
                  <Strip label="before" layout={layouts.before} other={layouts.after} />
                  <span aria-hidden="true" className="muted">→</span>
                  <Strip label="after" layout={layouts.after} other={layouts.before} />
                </>
              )}
              <span className="change-words">
                {[...change.make.map((each) => `+${each}`), ...change.destroy.map((each) => `−${each}`)].join(", ")}
              </span>
            </li>
          );
        })}
      </ul>
    </>
  );
}

function Evicted({ things }: { things: unknown[] }): ReactNode {
  return (
    <>
      <h3>Pods that would be evicted</h3>
      <ul className="names">
        {things.slice(0, 100).map((thing, place) => {
          const words = wordsOf(thing);
          return <li key={place}>{words.includes("/") ? <a href={href("workloads", { pod: words })}>{words}</a> : words}</li>;
        })}
      </ul>
    </>
  );
}

function Alternatives({ own, others, onTake }: { own: Alternative; others: Alternative[]; onTake: (wish: Wish) => void }): ReactNode {
  return (
    <>
      <h3 id="alternatives">Other sizes</h3>
      <table className="plain alternatives" aria-labelledby="alternatives">
        <thead className="hidden">
          <tr><th scope="col">Size</th><th scope="col">Answer</th><th scope="col">Choose</th></tr>
        </thead>
        <tbody>
          {[own, ...others].map((each, place) => (
            <tr key={place}>
              <th scope="row">{wishName(each.wish)}</th>
              <td>
                {each.failed ? <span className="muted">not simulated: {each.failed}</span> : !each.answer ? <span className="muted">simulating…</span> : (
                  <span className={each.answer.fits ? "good-text" : "warn-text"}>{wordsOfAnswer(each.answer)}</span>
                )}
              </td>
              <td className="number">
                {place === 0 ? <span className="muted">asked</span> : (
                  <Button className="button small" aria-label={`Take ${wishName(each.wish)}`} onPress={() => onTake(each.wish)}>Take</Button>
                )}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </>
  );
}
