// Saves a file on the user's machine.
export function saveBlob(name: string, blob: Blob): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  // The browser reads the address after this call.
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

export const saveCsv = (name: string, text: string): void => saveBlob(name, new Blob([text], { type: "text/csv;charset=utf-8" }));

/** Rejects if the browser cannot draw a picture of this size. */
export function savePicture(name: string, canvas: HTMLCanvasElement): Promise<void> {
  return new Promise((resolve, reject) => {
    canvas.toBlob((blob) => {
      if (!blob) return reject(new Error("the picture is too large for this browser"));
      saveBlob(name, blob);
      resolve();
    }, "image/png");
  });
}
