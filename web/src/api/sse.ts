// Parses server-sent events from bytes. The browser's own EventSource cannot send a bearer token
// and gives up for good at the first answer that is not 200, so the stream is read with fetch.

export interface Message {
  event: string;
  data: string;
  id: string | undefined;
}

const longestEvent = 64 * 1024 * 1024;

/** Parses the event stream format (WHATWG HTML, 9.2.6). Text may be split anywhere. */
export class SseParser {
  private rest = "";
  private event = "";
  private data: string[] = [];
  private size = 0;
  private id: string | undefined;

  /** Throws if a single event exceeds the size limit. */
  push(text: string): Message[] {
    const messages: Message[] = [];
    this.rest += text;
    let begin = 0;
    for (;;) {
      const end = this.rest.indexOf("\n", begin);
      if (end < 0) break;
      const line = this.rest.slice(begin, end).replace(/\r$/, "");
      begin = end + 1;
      const done = this.line(line);
      if (done) messages.push(done);
    }
    this.rest = this.rest.slice(begin);
    if (this.rest.length + this.size > longestEvent) throw new Error("an event is too long");
    return messages;
  }

  private line(line: string): Message | undefined {
    if (line === "") return this.dispatch();
    const colon = line.indexOf(":");
    if (colon === 0) return undefined; // a comment that keeps the connection open
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (field === "event") this.event = value;
    else if (field === "data") {
      this.data.push(value);
      this.size += value.length;
    } else if (field === "id" && !value.includes("\0")) this.id = value;
    return undefined;
  }

  private dispatch(): Message | undefined {
    const message =
      this.data.length > 0
        ? { event: this.event || "message", data: this.data.join("\n"), id: this.id }
        : undefined;
    this.event = "";
    this.data = [];
    this.size = 0;
    return message;
  }
}

/** Milliseconds until the next try: doubles from 1 s to 30 s, spread by `random` (0..1). */
export function backoff(failures: number, random: number): number {
  const most = Math.min(30_000, 1000 * 2 ** Math.min(failures, 10));
  return Math.round(most / 2 + (most / 2) * random);
}
