// Prompts that a server fills in.

import { post } from "./api";
import type { Content, Prompt } from "./types";

export interface PromptMessages {
  description?: string;
  messages?: { role: string; content: Content | Content[] }[];
}

/** Asks the server for the messages of a prompt. Arguments without a value are not sent. */
export function fillPrompt(p: Pick<Prompt, "server" | "name">, args: Record<string, string>): Promise<PromptMessages> {
  const given = Object.fromEntries(Object.entries(args).filter(([, v]) => v !== ""));
  return post<PromptMessages>("/api/v1/prompts/get", { server: p.server, name: p.name, ...(Object.keys(given).length ? { arguments: given } : {}) });
}

export const blocksOf = (content: Content | Content[]): Content[] => (Array.isArray(content) ? content : [content]);

/** The texts of a prompt as a question: messages, and texts of embedded resources. */
export function textOf(p: PromptMessages): string {
  return (p.messages ?? []).flatMap((m) => blocksOf(m.content)).map((c) => c.text ?? c.resource?.text ?? "").filter(Boolean).join("\n\n");
}
