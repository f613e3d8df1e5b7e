// The server's clock between its messages. A sandbox runs faster or slower than real time, so the
// rate is measured.

/** Real milliseconds over which the rate is measured: a shorter span would measure the network. */
const shortest = 2_500;
const longest = 20_000;
/** Real milliseconds between two messages that are worth comparing. */
const apart = 250;
/** Real milliseconds of sights of which the one with the least delay counts. */
const recent = 3_000;
/** A rate this close to 1 is a clock in real time. */
const slack = 0.08;

interface Sight {
  real: number;
  server: number;
}

export class ServerClock {
  private sights: Sight[] = [];
  private rate = 1;

  /** `real`: the browser's clock in milliseconds. */
  constructor(private readonly real: () => number) {}

  /** The server's time is `at`, or was when it sent the message. `again`: of another connection. */
  see(at: number, again = false): void {
    const real = this.real();
    const last = this.sights.at(-1);
    const back = last !== undefined && at < last.server;
    if (again || back) this.sights = [];
    else if (last && real - last.real < apart) return;
    if (back) this.rate = 1;
    this.sights = [...this.sights.filter((each) => real - each.real <= longest), { real, server: at }];
    this.measure();
  }

  /** From the steps between sights, but for those in which the clock was set or messages were late. */
  private measure(): void {
    const steps = this.sights.slice(1).map((each, place) => {
      const before = this.sights[place]!;
      return { real: each.real - before.real, server: each.server - before.server };
    });
    const rates = steps.map((each) => each.server / each.real).sort((a, b) => a - b);
    const middle = rates[Math.floor(rates.length / 2)] ?? 1;
    const usual = steps.filter((each) => Math.abs(each.server / each.real - middle) <= 0.5 * middle);
    const sum = (of: "real" | "server"): number => usual.reduce((all, each) => all + each[of], 0);
    if (sum("real") < shortest) return;
    const rate = sum("server") / sum("real");
    this.rate = Math.abs(rate - 1) <= slack ? 1 : rate;
  }

  now(): number {
    const real = this.real();
    const last = this.sights.at(-1);
    if (!last) return real;
    const near = this.sights.filter((each) => last.real - each.real <= recent);
    return Math.max(...near.map((each) => each.server + (real - each.real) * this.rate));
  }

  /** Seconds of the server in a real one. */
  speed(): number {
    return this.rate;
  }
}
