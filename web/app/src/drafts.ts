// Questions that are written and not sent, by session, "" for a new one. Other pages put prompts and resources here.

import type { Attached } from "./attach";

interface Draft {
  text: string;
  attached?: Attached;
}

const drafts = new Map<string, Draft>();

export const draftOf = (session: string): Draft => drafts.get(session) ?? { text: "" };

export function keepDraft(session: string, draft: Draft): void {
  drafts.set(session, draft);
}

export function dropDraft(session: string): void {
  drafts.delete(session);
}
