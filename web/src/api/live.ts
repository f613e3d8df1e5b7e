// The live connection of the page: one event stream, reconnected while the page is open.
import { ServerClock } from "../lib/clock";
import { address, ApiError, errorOf, headers } from "./client";
import { backoff, SseParser } from "./sse";

export type Connection =
  | { state: "connecting" }
  | { state: "live" }
  | { state: "waiting"; retryAt: number; why: string }
  | { state: "refused"; status: number; why: string };

type Listener = (data: unknown) => void;

// The server sends a comment each 15 s; a connection that is silent for longer is dead.
const silence = 45_000;
/** Milliseconds until a reader without the right asks again. */
const forbiddenFor = 60_000;

/**
 * Delivers events by name. "reset" means: loaded data may be outdated, load again. "reconnected": the server may be
 * another one now.
 */
export class Live {
  connection: Connection = { state: "connecting" };
  /** The latest time, on the server's clock, of any received data. */
  freshAt = 0;
  private readonly listeners = new Map<string, Set<Listener>>();
  private readonly watchers = new Set<() => void>();
  private readonly abort = new AbortController();
  private lastId: string | undefined;
  private readonly clock = new ServerClock(Date.now);
  private failures = 0;
  private greeted = false;

  constructor(private readonly cluster: string) {}

  /** The server's clock. */
  now(): number {
    return this.clock.now();
  }

  /** Seconds of the server's clock in a real one: not 1 in a sandbox. */
  speed(): number {
    return this.clock.speed();
  }

  setServerTime(at: number): void {
    this.clock.see(at, true);
  }

  sawDataOf(at: number): void {
    if (at <= this.freshAt) return;
    this.freshAt = at;
    this.tell();
  }

  on(event: string, listener: Listener): () => void {
    const all = this.listeners.get(event) ?? new Set<Listener>();
    this.listeners.set(event, all.add(listener));
    return () => all.delete(listener);
  }

  watch = (watcher: () => void): (() => void) => {
    this.watchers.add(watcher);
    return () => this.watchers.delete(watcher);
  };

  start(): void {
    void this.run();
  }

  stop(): void {
    this.abort.abort();
  }

  private tell(): void {
    for (const each of this.watchers) each();
  }

  private become(connection: Connection): void {
    this.connection = connection;
    this.tell();
  }

  private async run(): Promise<void> {
    let goesOn = false; // the server ends a stream regularly, to check permissions again
    while (!this.abort.signal.aborted) {
      if (!goesOn) this.become({ state: "connecting" });
      goesOn = false;
      const began = Date.now();
      let why = "the server ended the connection";
      try {
        await this.connectOnce();
        goesOn = Date.now() - began > 10_000;
        if (goesOn) continue;
      } catch (error) {
        if (this.abort.signal.aborted) return;
        if (error instanceof ApiError && (error.status === 401 || error.status === 403)) {
          this.become({ state: "refused", status: error.status, why: error.message });
          // Rights may come back while no user is there to reload the page; only a user can give a token.
          if (error.status === 401) return;
          await this.rest(forbiddenFor);
          continue;
        }
        why = error instanceof ApiError ? error.message : "the connection broke";
      }
      if (this.abort.signal.aborted) return;
      await this.pause(backoff(this.failures++, Math.random()), why);
    }
  }

  private pause(wait: number, why: string): Promise<void> {
    this.become({ state: "waiting", retryAt: Date.now() + wait, why });
    return this.rest(wait);
  }

  /** Waits; ends early when the browser reports that the network is back. */
  private rest(wait: number): Promise<void> {
    return new Promise((resolve) => {
      const done = (): void => {
        clearTimeout(timer);
        window.removeEventListener("online", done);
        this.abort.signal.removeEventListener("abort", done);
        resolve();
      };
      const timer = setTimeout(done, wait);
      window.addEventListener("online", done);
      this.abort.signal.addEventListener("abort", done, { once: true });
    });
  }

  private async connectOnce(): Promise<void> {
    const attempt = new AbortController();
    const giveUp = (): void => attempt.abort();
    this.abort.signal.addEventListener("abort", giveUp, { once: true });
    let timer = setTimeout(giveUp, silence);
    try {
      const response = await fetch(address("stream", { cluster: this.cluster }), {
        headers: headers({
          Accept: "text/event-stream",
          ...(this.lastId === undefined ? {} : { "Last-Event-ID": this.lastId }),
        }),
        signal: attempt.signal,
        cache: "no-store",
        credentials: "same-origin",
      });
      if (!response.ok) throw errorOf(response.status, await response.text());
      if (!response.body) throw new ApiError(0, "the stream has no body");
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      const parser = new SseParser();
      for (;;) {
        const { value, done } = await reader.read();
        if (done) return;
        clearTimeout(timer);
        timer = setTimeout(giveUp, silence);
        for (const message of parser.push(value)) this.deliver(message.event, message.data, message.id);
      }
    } finally {
      clearTimeout(timer);
      attempt.abort();
      this.abort.signal.removeEventListener("abort", giveUp);
    }
  }

  private deliver(event: string, text: string, id: string | undefined): void {
    if (id !== undefined) this.lastId = id;
    let data: unknown;
    try {
      data = JSON.parse(text);
    } catch {
      return; // one malformed event must not stop the others
    }
    const at = (data as { at?: unknown } | null)?.at;
    if (typeof at === "number" && (event === "hello" || event === "at")) this.clock.see(at, event === "hello");
    if (event === "hello") {
      if (this.greeted) this.emit("reconnected", null);
      // Without an id the server cannot resume where this page stopped.
      if (this.greeted && this.lastId === undefined) this.emit("reset", null);
      this.greeted = true;
    }
    if (this.connection.state !== "live") {
      this.failures = 0;
      this.become({ state: "live" });
    }
    const fresh = (data as { fresh_at?: unknown } | null)?.fresh_at;
    if (typeof fresh === "number") this.sawDataOf(fresh);
    this.emit(event, data);
  }

  private emit(event: string, data: unknown): void {
    for (const listener of this.listeners.get(event) ?? []) listener(data);
  }
}
