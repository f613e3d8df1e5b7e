/** True if a key that is pressed there writes text or moves a control. */
export const isTyping = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement && (target.isContentEditable || target.matches("input:not([type=range]):not([type=checkbox]), textarea, select, [aria-haspopup=listbox]"));
