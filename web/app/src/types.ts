// The shapes of the API: what openapi.json says, and beside it what that leaves open:
// schemas of tools, and what is inside of events and of what waits.

import type * as api from "./api.gen";

export type { Agent, Check, Completion, CompletionRequest, ConfigEntries, ConfigEntry, ConfigSection, Content, Difference, DraftChange, DraftMistake, DraftResponse, Edited, Finding, Found, Frame, GatewayClient, GatewayClients, GatewayEndpoint, Grant, LogLine, Me, Model, Problem, Prompt, Proposal, ProviderInfo, RegistryEntry, RegistryResults, RegistrySetup, Replay, Resource, RunState, RunTable, ServerProblem, Session, SessionRow, Stat, TableFile, TablePage, TableRow, ToolEntry, Unoffered, Usage, WorkflowGraph, WorkflowText } from "./api.gen";

export type ApiError = api.Failure;
export type ServerStatus = api.Server;

/** What a run waits for, as it stands in the run's row. */
export type Waiting = Omit<api.Waiting, "data"> & { data?: Asking };

export type Asking = Omit<api.Approval, "id" | "run" | "step" | "session" | "title" | "expires" | "kind"> & { kind: api.Approval["kind"] | "child"; run?: string };

export type Approval = Asking & Pick<api.Approval, "id" | "run" | "step" | "session" | "title" | "expires"> & { since?: string };

export type Run = Omit<api.Run, "waiting"> & { waiting?: Waiting[] };
export type RunRow = Run & Pick<api.RunRow, "interrupted">;

export type RunEvent = Omit<api.Event, "data"> & { data?: any }; // depends on the kind; fold.ts is the only reader

export type Tool = Omit<api.Tool, "input_schema" | "output_schema" | "annotations"> & { input_schema?: Schema; output_schema?: Schema; annotations: NonNullable<api.Tool["annotations"]> };

export interface Parameter {
  name: string;
  type?: string;
  description?: string;
  required?: boolean;
}

export type ToolDetail = Tool & Omit<api.ToolDetail, keyof api.Tool | "arguments"> & { arguments: Parameter[] };

export interface Schema {
  type?: string | string[];
  title?: string;
  description?: string;
  properties?: Record<string, Schema>;
  required?: string[];
  items?: Schema;
  enum?: unknown[];
  const?: unknown;
  default?: unknown;
  minimum?: number;
  maximum?: number;
  minLength?: number;
  maxLength?: number;
  pattern?: string;
  format?: string;
  oneOf?: Schema[];
  anyOf?: Schema[];
  additionalProperties?: boolean | Schema;
  /** Values that a form offers beside free text. */
  suggestions?: string[];
}

export type Workflow = Omit<api.Workflow, "parameters"> & { parameters: Schema };

export interface ToolResult {
  content?: api.Content[];
  structuredContent?: unknown;
  isError?: boolean;
}
