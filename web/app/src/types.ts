// The shapes of the API, as openapi.json describes them.

export type RunState = "working" | "input_required" | "completed" | "failed" | "cancelled";

export interface Problem {
  code: string;
  detail: string;
  status?: number;
  title?: string;
}

export interface ApiError {
  code: string;
  message: string;
}

/** What a run waits for, as it stands in the run's row. */
export interface Waiting {
  step: string;
  since: string;
  expires?: string;
  data?: Asking;
}

export interface Asking {
  kind: "approval" | "input" | "limit" | "sampling" | "child";
  name: string;
  server: string;
  remote_name: string;
  arguments?: unknown;
  reason?: string;
  requests?: Record<string, { method?: string; params?: Record<string, unknown> }>;
  live?: boolean;
  run?: string;
}

export interface Approval extends Asking {
  id: string;
  run: string;
  step: string;
  session: string;
  title?: string;
  since?: string;
  expires?: string;
}

export interface Run {
  id: string;
  session: string;
  principal?: string;
  caller?: string;
  parent?: string;
  agent?: string;
  model?: string;
  title?: string;
  state: RunState;
  stop_reason?: string;
  seq: number;
  created: string;
  updated: string;
  waiting?: Waiting[];
}

export interface RunEvent {
  run: string;
  seq: number;
  time: string;
  step?: string;
  kind: string;
  attempt?: number;
  data?: any; // depends on the kind; fold.ts is the only reader
}

export interface Usage {
  input_tokens: number;
  output_tokens: number;
  cache_read_tokens?: number;
}

export interface Session {
  id: string;
  title?: string;
  agent?: string;
  head?: string;
  parent?: string;
  runs: number;
  created: string;
  updated: string;
}

export interface ServerStatus {
  name: string;
  title?: string;
  transport: string;
  found?: string;
  target: string;
  state: string;
  since?: string;
  protocol?: string;
  server?: string;
  tools: number;
  starts: number;
  restarts: number;
  retry_at?: string;
  error?: ApiError;
  phases?: { name: string; duration_ms: number }[];
}

export interface Tool {
  server: string;
  remote_name: string;
  name: string;
  title?: string;
  description?: string;
  input_schema?: Schema;
  output_schema?: Schema;
  annotations: { read_only?: boolean; destructive?: boolean; idempotent?: boolean; open_world?: boolean };
  tokens?: number;
}

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
}

export interface Content {
  type: string;
  text?: string;
  data?: string;
  mimeType?: string;
  uri?: string;
  name?: string;
  resource?: { uri: string; mimeType?: string; text?: string; blob?: string };
}

export interface ToolResult {
  content?: Content[];
  structuredContent?: unknown;
  isError?: boolean;
}
