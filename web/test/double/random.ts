// Random numbers from a seed, and smooth noise from a key and a time: equal input, equal output.

export function hash(text: string): number {
  let value = 2166136261;
  for (let index = 0; index < text.length; index++) {
    value = Math.imul(value ^ text.charCodeAt(index), 16777619);
  }
  return value >>> 0;
}

/** Mulberry32. */
export function generator(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}

/** Between -1 and 1, changes over minutes. */
export function noise(key: number, at: number): number {
  const minutes = at / 60_000;
  const phase = (key % 1000) / 159;
  return (
    0.5 * Math.sin(minutes / 7.3 + phase) +
    0.3 * Math.sin(minutes / 2.1 + phase * 3.7) +
    0.2 * Math.sin(minutes / 0.6 + phase * 7.1)
  );
}
