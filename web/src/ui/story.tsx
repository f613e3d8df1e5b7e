// A story as the server composes it, with the names of pods in bold.
import type { ReactNode } from "react";
import type { Story } from "../api/types";

export const StoryText = ({ story: { subject, sentence } }: { story: Pick<Story, "subject" | "sentence"> }): ReactNode =>
  subject && sentence.startsWith(subject) ? <><strong>{subject}</strong>{sentence.slice(subject.length)}</> : sentence;
