// Made from httpapi/openapi.json by types.mjs; do not edit.

/** An error (RFC 9457). */
export type Problem = {
  type: string;
  title: string;
  status: number;
  /** what failed, where, why, and what to do */
  detail: string;
  /** the code of the error */
  code: string;
  data?: unknown;
  /** the run of the request, if it may have taken effect: the status is 424, and the request must not be repeated */
  run?: string;
  /** what a tool call waits for; when it is decided, the run continues */
  approvals?: Approval[];
};

export type Health = {
  status: string;
  version: string;
};

export type Ready = {
  /** ok or unavailable */
  status: string;
  /** ok or error */
  store: string;
  /** why no run can start */
  reason?: string;
  servers: Record<string, number>;
};

export type Me = {
  principal: string;
  /** may switch servers and read the configuration */
  owner: boolean;
  version: string;
  project?: string;
  apis: string[];
  /** for the owner: how many changes of the configuration wait for an agreement */
  proposals?: number;
};

export type RunState = "working" | "input_required" | "completed" | "failed" | "cancelled";

export type Waiting = {
  step: string;
  since: string;
  expires?: string;
  data?: unknown;
};

export type Run = {
  id: string;
  session: string;
  principal?: string;
  /** the run that called this one */
  caller?: string;
  /** the run whose conversation this one continues */
  parent?: string;
  parent_seq?: number;
  core: string;
  agent?: string;
  model?: string;
  title?: string;
  state: RunState;
  stop_reason?: string;
  /** the number of the last event */
  seq: number;
  created: string;
  updated: string;
  waiting?: Waiting[];
  imported?: boolean;
  /** somebody else wrote it into the store: it is shown, and nothing of it is run */
  foreign?: boolean;
};

export type RunRow = Run & {
  /** no process works on the run although its state is working: its process died */
  interrupted?: boolean;
};

export type StartRequest = {
  question: string;
  agent?: string | null;
  /** to continue: its id, or -1 for the last one */
  session?: string | null;
  /** ask in a fork of the session */
  fork?: boolean | null;
  /** an entry of models, or provider/name */
  model?: string | null;
  no_tools?: boolean | null;
  /** auto, any, none or a tool's name */
  tool_choice?: string | null;
  groups?: string[] | null;
  state?: string | null;
  max_turns?: number | null;
  mode?: "native" | "react" | "" | null;
  /** a tool table, an Arrow file or stream: the run gets only those tools of the configuration that its rows name */
  tool_table?: string | null;
  /** instead of tool_table, the id of a table of GET /tables; for the owner */
  tool_table_file?: string | null;
  /** the column of the tool table with the tools; empty: the last such column */
  tool_column?: string | null;
  /** allows beforehand what would ask; the value is who the journal names */
  yes?: string | null;
  /** that belong to the question: pictures, PDF documents, sounds, videos, texts */
  files?: {
    name?: string;
    data?: string;
    /** in place of data: an address (https, gs, s3), or file-id: and the id of a file at the provider */
    uri?: string;
    /** of the file at the uri; otherwise the end of the uri tells it */
    mime_type?: string;
  }[] | null;
  /** of servers, that belong to the question */
  resources?: ReadRequest[] | null;
  /** tables that the agent is given: Arrow files or streams */
  data?: string[] | null;
  /** a JSON Schema that the answer has to fit */
  output_schema?: Record<string, unknown> | null;
};

export type ServerProblem = {
  server?: string;
  code: string;
  message: string;
};

export type StartResponse = {
  run: Run;
  problems?: ServerProblem[];
};

export type Usage = {
  input_tokens: number;
  output_tokens: number;
  cache_read_tokens?: number;
  cache_write_tokens?: number;
  reasoning_tokens?: number;
  /** web searches of the provider's own tool */
  searches?: number;
};

export type CallRecord = {
  run: string;
  step: string;
  id?: string;
  kind: string;
  name: string;
  server?: string;
  remote_name?: string;
  args?: unknown;
  decision?: string;
  decided_by?: string;
  reason?: string;
  /** open, result, unknown, denied, invalid, failed, interrupted */
  outcome: string;
  success: boolean;
  error?: string;
  result?: unknown;
  duration_ms: number;
};

export type Step = {
  step?: string;
  kind: string;
  name?: string;
  start_ms: number;
  duration_ms: number;
  outcome: string;
  error?: string;
};

export type RunInfo = {
  run: string;
  session: string;
  state: RunState;
  stop_reason?: string;
  answer: string;
  /** sources of the answer; start and end are bytes of it */
  citations?: Citation[];
  /** images and audio that the model has generated */
  media?: Media[];
  /** the text of the last model call if it was stopped or failed while its answer arrived */
  partial?: string;
  turns: number;
  tool_calls: CallRecord[];
  /** null: there were model calls, and no provider reported tokens */
  usage: (Usage) | (null);
  /** model calls whose provider reported no tokens; usage lacks them */
  unmetered_calls?: number;
  /** US dollars; null: no price is known */
  cost: unknown;
  error?: unknown;
  waiting?: Waiting[];
  model?: string;
  agent?: string;
  steps: Step[];
  /** no process works on the run although its state is working: its process died */
  interrupted?: boolean;
};

export type Event = {
  run: string;
  seq: number;
  time: string;
  step?: string;
  kind: string;
  attempt?: number;
  data?: unknown;
};

export type Message = {
  role: string;
  parts: {
    type: string;
    /** of a text */
    citations?: Citation[];
  }[];
  n?: number;
  run?: string;
  seq?: number;
  time?: string;
  /** the model was stopped before the end of its text */
  partial?: boolean;
};

/** a source that a model names for its text */
export type Citation = {
  title?: string;
  url?: string;
  /** the provider's id of a file, or the name of a document */
  file?: string;
  /** the passage of the source */
  quote?: string;
  /** first byte of the text that it supports; with end, absent if it is not known */
  start?: number;
  end?: number;
};

/** a generated image or audio */
export type Media = {
  /** id for /runs/{id}/artifacts/{artifact} */
  artifact: string;
  mime_type: string;
  bytes: number;
};

export type CancelRequest = {
  reason?: string | null;
  /** also withdraw the messages into the run that no model call has sent; no later run sends them */
  withdraw?: boolean | null;
};

export type SteerRequest = {
  text: string;
};

export type SteerResponse = {
  run: string;
  seq: number;
};

export type DecideRequest = {
  /** needed for runs/{id}/decide */
  step?: string | null;
  verdict: "allow" | "deny";
  reason?: string | null;
  arguments?: unknown;
  /** with verdict: deny: the forms and pages of a server are neither accepted nor declined; the server receives the action cancel */
  cancel?: boolean | null;
  remember?: "" | "session" | "always" | null;
  /** with remember: always: only calls whose arguments fulfil this condition, in CEL over args */
  if?: string | null;
  /** with remember: always: only so many more calls; 0: any number */
  uses?: number | null;
  /** with remember: always: only so long, such as 24h or 30d */
  for?: string | null;
};

export type Decided = {
  /** false: somebody else decided first */
  mine: boolean;
  won: {
    verdict?: string;
    by?: string;
    reason?: string;
  };
  run: Run;
  /** of the event that decided: decision, answer, expired */
  kind: string;
  /** of that event */
  time: string;
};

export type Session = {
  id: string;
  title?: string;
  agent?: string;
  principal?: string;
  parent?: string;
  head?: string;
  head_seq?: number;
  runs: number;
  created: string;
  updated: string;
};

export type SessionRow = Session & {
  /** no process works on a run of the session although its state is working */
  interrupted?: boolean;
};

export type SessionInfo = Session & {
  run_list: RunRow[];
};

export type RenameRequest = {
  title: string;
};

export type ForkRequest = {
  /** the last message that both have: its number, or RUN or RUN:SEQ */
  at?: string | null;
  title?: string | null;
};

export type ForkResponse = {
  session: Session;
  at: number;
};

export type CompactRequest = {
  model?: string | null;
};

export type Found = {
  session: string;
  run: string;
  seq?: number;
  role?: string;
  snippet?: string;
  title: string;
  time: string;
  n?: number;
};

export type Approval = {
  /** RUN/STEP; in a path the slash is %2F */
  id: string;
  run: string;
  step: string;
  session: string;
  title?: string;
  expires?: string;
  kind: "approval" | "input" | "limit" | "sampling" | "client";
  name: string;
  server: string;
  remote_name: string;
  arguments?: unknown;
  reason?: string;
  /** what the server asks for, by key */
  requests?: Record<string, {
    method?: string;
    params?: Record<string, unknown>;
  }>;
  /** fields that seem to ask for a secret, by the key of the request: the server gets the answers */
  secrets?: Record<string, string[]>;
  /** the call is under way and waits for the answer */
  live?: boolean;
  /** the call was made before with an unknown outcome; a decision holds for this repeat only */
  again?: boolean;
  /** what a permanent approval would be bound to */
  subject?: {
    /** the identity of the server */
    server_id: string;
    /** digest of what the server starts or calls */
    target?: string;
    /** digest of the tool's definition */
    definition?: string;
  };
  /** the MCP server that the model's provider calls */
  connector?: {
    name: string;
    /** address of the server, without secrets, or the provider's id of it */
    url?: string;
    tool: string;
  };
  /** a condition that the call fulfils, for a narrower permanent approval */
  narrower?: {
    /** CEL over args */
    if: string;
    /** arguments that the condition leaves open */
    any?: string[];
  };
  /** somebody else wrote the run into the store: it cannot be decided */
  foreign?: boolean;
};

export type Grant = {
  /** such as gr_4k7w2m9x; gs_8m2c5t1h of an approval for a session */
  id: string;
  principal: string;
  /** if set, the approval is only for this session */
  session?: string;
  /** the server's name when the grant was given */
  server: string;
  /** the server's identity, such as project:github */
  server_id: string;
  remote: string;
  /** digest of what the server starts or calls */
  target?: string;
  /** digest of the tool's definition */
  definition?: string;
  /** CEL over args; absent: any arguments */
  if?: string;
  /** how many calls it allows; absent: any number */
  uses?: number;
  /** how many of them were made */
  used?: number;
  expires?: string;
  by?: string;
  created: string;
  /** somebody else wrote it into the store */
  foreign?: boolean;
  state: "active" | "lapsed" | "expired" | "used_up" | "foreign";
  /** why it is not active */
  reason?: string;
};

/** the id of a grant; or its tool, if there is only one grant for that */
export type RevokeRequest = {
  id?: string | null;
  server?: string | null;
  remote_name?: string | null;
};

export type Server = {
  name: string;
  title?: string;
  transport: string;
  found?: string;
  deprecated?: boolean;
  target: string;
  state: "disabled" | "cold" | "starting" | "ready" | "degraded" | "backoff" | "auth_required" | "failed" | "closed";
  since?: string;
  protocol?: string;
  server?: string;
  /** -1: not asked yet */
  tools: number;
  starts: number;
  restarts: number;
  retry_at?: string;
  progress?: string;
  cached?: string;
  error?: Failure;
  phases?: {
    name: string;
    duration_ms: number;
  }[];
  /** that it declared, by name */
  capabilities?: string[];
  /** capabilities of clients that the configuration does not offer to the server */
  not_offered?: Unoffered[];
};

export type Unoffered = {
  /** elicitation, roots or sampling */
  capability: string;
  /** of the server's configuration, whose value offers it */
  key: string;
  /** an example */
  value: string;
};

export type LogLine = {
  time: string;
  kind: string;
  text: string;
};

export type LoginResponse = {
  url: string;
};

export type LogoutRequest = {
  principal?: string;
};

export type LogoutResponse = {
  server: string;
  principal?: string;
  signed_in: boolean;
  revoked: boolean;
  reason?: string;
};

export type Tool = {
  server: string;
  remote_name: string;
  name: string;
  title?: string;
  description?: string;
  input_schema?: unknown;
  output_schema?: unknown;
  /** hints of the server */
  annotations?: {
    title?: string;
    read_only?: boolean;
    destructive?: boolean;
    idempotent?: boolean;
    open_world?: boolean;
  };
  /** pictures to show, as the server sent them */
  icons?: unknown;
  /** such as taskSupport, as the server sent it */
  execution?: unknown;
  /** as the server sent it */
  _meta?: unknown;
  tokens: number;
};

export type ToolDetail = Tool & {
  offered: boolean;
  /** why it is withheld */
  reason?: string;
  arguments: unknown[];
  /** parts of the schemas that calls and results are not checked against */
  unchecked?: {
    /** input_schema or output_schema */
    field: string;
    /** JSON pointer (RFC 6901); empty is the whole schema */
    pointer: string;
    reason: string;
  }[];
  steps: {
    step: string;
    field: string;
    before: string;
    after: string;
  }[];
};

export type CallRequest = {
  arguments?: Record<string, unknown> | null;
  /** answer at once with the run */
  detach?: boolean | null;
  /** a tool table, an Arrow file or stream, whose only row selects the tool of the configuration; the name in the path is then not used */
  tool_table?: string | null;
  /** the column of the tool table with the tools; empty: the last such column */
  tool_column?: string | null;
};

export type CallResponse = {
  run: Run;
  result?: unknown;
};

export type Prompt = {
  server: string;
  name: string;
  title?: string;
  description?: string;
  arguments?: {
    name: string;
    title?: string;
    description?: string;
    required?: boolean;
  }[];
};

export type Completion = {
  values: string[];
  /** of all values; absent if not known */
  total?: number;
  has_more?: boolean;
};

/** one of prompt and template is set */
export type CompletionRequest = {
  server: string;
  prompt?: string;
  template?: string;
  argument: string;
  value?: string;
  arguments?: Record<string, string> | null;
};

export type PromptRequest = {
  server: string;
  name: string;
  arguments?: Record<string, string> | null;
};

export type Resource = {
  server: string;
  uri?: string;
  uriTemplate?: string;
  name: string;
  description?: string;
  mimeType?: string;
};

export type ReadRequest = {
  server: string;
  uri: string;
};

/** a block of MCP */
export type Content = {
  type: string;
  text?: string;
  data?: string;
  mimeType?: string;
  uri?: string;
  name?: string;
  title?: string;
  description?: string;
  resource?: {
    uri: string;
    mimeType?: string;
    text?: string;
    blob?: string;
  };
};

export type Agent = {
  name: string;
  description?: string;
  model?: string;
  mode?: string;
};

export type Model = {
  name: string;
  from: string;
  default: boolean;
  provider?: string;
  model?: string;
  api?: string;
  takes: string[];
  price: unknown;
  /** whose rules hold for its tools, see /api/v1/lint; absent: it takes everything */
  rules?: string;
};

export type TestModelRequest = {
  name: string;
};

export type ProviderInfo = {
  name: string;
  /** the environment variable that also gives the key */
  variable: string;
  /** the model of a run that names none */
  model?: string;
  base_url?: string;
  /** tenon keeps a key */
  kept: boolean;
};

export type ProviderKeyRequest = {
  key: string;
};

export type ModelTest = {
  name: string;
  ok: boolean;
};

export type Stat = {
  name: string;
  /** with per: the beginning of the hour or day */
  at?: string;
  server?: string;
  remote_name?: string;
  title?: string;
  runs?: number;
  model_calls?: number;
  calls: number;
  errors: number;
  denied: number;
  cached: number;
  unknown: number;
  p50_ms: number;
  p95_ms: number;
  p99_ms: number;
  bytes: number;
  input_tokens: number;
  output_tokens: number;
  /** model calls whose provider reported no tokens, which the counts of tokens lack */
  unmetered_calls?: number;
  /** of the input: read from the cache of a provider */
  cache_read_tokens: number;
  /** of the input: written to the cache of a provider */
  cache_write_tokens: number;
  /** dollars that the cache saved at today's prices; negative if writing cost more */
  saved: number;
  /** US dollars, as far as prices are known */
  cost: number;
};

export type Config = {
  file?: string;
  values: {
    path: string;
    value: string;
    origin: string;
  }[];
};

/** An error of the researchai API. */
export type Error = {
  error: string;
  /** the run of the request, if it exists; with status 424 it may have taken effect, and the request must not be repeated */
  run?: string;
  /** /chat: the session, if it exists */
  sessionId?: string;
  /** what a tool call waits for; when it is decided, the run continues */
  approvals?: Approval[];
  /** /chat with busy: steer: the message is in a run that waits, and must not be sent again */
  accepted?: boolean;
};

export type ChatRequest = {
  message: string;
  model?: string | null;
  format?: "PLAIN_TEXT" | "JSON" | "XML" | "" | null;
  sessionId?: string | null;
  temperature?: number | null;
  maxTokens?: number | null;
  /** CLAUDE, OPENAI or a provider of tenon: a configured model of it answers */
  providerId?: string | null;
  /** text that follows the instructions of the agent */
  systemPrompt?: string | null;
  /** they precede the members of the same name above */
  parameters?: {
    temperature?: number | null;
    maxTokens?: number | null;
    topP?: number | null;
    presencePenalty?: number | null;
    frequencyPenalty?: number | null;
    stopSequences?: string[] | null;
    seed?: number | null;
  } | null;
  /** if the session has a run at work: refuse with 409 (default), wait until it has ended, or send the message into it; a message that waits is lost if its client leaves */
  busy?: "refuse" | "queue" | "steer" | "" | null;
};

export type ChatResponse = {
  response: string;
  sessionId: string;
  tokensUsed: number;
  tokenDetails: {
    inputTokens?: number;
    outputTokens?: number;
    totalTokens?: number;
    estimatedInputTokens?: number;
    estimatedOutputTokens?: number;
    estimatedTotalTokens?: number;
  };
  run: string;
  /** sources of the response; start and end are bytes of it */
  citations?: Citation[];
  /** images and audio that the model has generated */
  media?: Media[];
  /** set if the run ended at a limit */
  finishReason?: "MAX_TOKENS";
  /** the limit at which the run ended; response has the text so far */
  error?: string;
};

export type ChatServer = {
  id: string;
  name: string;
  description?: string;
  connected: boolean;
  enabled: boolean;
  transport: string;
  /** why the server is not connected, or why its tools are not offered */
  error?: string;
  toolsCount: number;
  resourcesCount?: number;
  promptsCount?: number;
  tools?: unknown[];
};

export type ChatDone = {
  success: boolean;
  message: string;
};

export type OpenAIError = {
  error: {
    message: string;
    type: string;
    param?: unknown;
    code?: string;
  };
};

export type Object = Record<string, unknown>;

export type Changes = {
  topics: ("runs" | "sessions" | "approvals" | "servers" | "tools" | "prompts")[];
};

export type ToolEntry = {
  file: string;
  /** of the file; a change that names it fails if the file has changed */
  digest: string;
  /** of the entry; the one that it would get where there is none */
  name: string;
  exists: boolean;
  /** why the entry cannot be changed here */
  fixed?: string;
  /** why its arguments cannot be changed here */
  fixed_arguments?: string;
  arguments: {
    name: string;
    /** absent: as the server says */
    type?: string;
    description?: string;
    /** absent: as the server says */
    required?: boolean;
    default?: unknown;
    enum?: unknown[];
    /** position in the file, from 0; a change keeps the comments and the unknown keys of such an argument */
    index?: number;
  }[];
  /** other keys as the file has them: title, description, groups, states, next_state, arguments_mode */
  keys: Record<string, unknown>;
  /** as it is written; a dot leads into a map */
  policy: Record<string, string>;
  /** in the server's own schema */
  server_arguments: {
    name: string;
    /** absent: as the server says */
    type?: string;
    description?: string;
    /** absent: as the server says */
    required?: boolean;
    default?: unknown;
    enum?: unknown[];
    /** position in the file, from 0; a change keeps the comments and the unknown keys of such an argument */
    index?: number;
  }[];
  /** the server accepts other arguments as well, as far as is known */
  server_open: boolean;
};

export type ToolEntryRequest = {
  /** key of a new entry; the server need not have listed the tool */
  name?: string;
  /** of the file that the sender has seen; 409 if it has changed */
  digest?: string;
  /** all of them; null keeps them */
  arguments: {
    name: string;
    /** absent: as the server says */
    type?: string;
    description?: string;
    /** absent: as the server says */
    required?: boolean;
    default?: unknown;
    enum?: unknown[];
    /** position in the file, from 0; a change keeps the comments and the unknown keys of such an argument */
    index?: number;
  }[] | null;
  /** values to change; null removes one */
  keys?: Record<string, unknown>;
  /** the rules that change; null or an empty text removes one */
  policy?: Record<string, string | number | null>;
  /** only say what would be written */
  dry_run?: boolean;
};

export type RegistryResults = {
  /** the registry's host; absent if registry.url is not set */
  registry?: string;
  items: RegistryEntry[];
  /** there are further matches */
  more?: boolean;
};

/** A server of a registry. Its texts come from its author. */
export type RegistryEntry = {
  name: string;
  title?: string;
  description?: string;
  version?: string;
  /** active, deprecated or deleted */
  status?: string;
  website?: string;
  repository?: string;
  /** the ways to configure the server, the preferred one first */
  setups: RegistrySetup[];
  /** configured servers with this registry_name */
  configured?: string[];
};

export type RegistrySetup = {
  /** for the entry in tenon.yaml */
  name: string;
  transport: "stdio" | "http" | "sse";
  /** of stdio: the program and its arguments */
  command?: string[];
  url?: string;
  /** variables of the environment, or headers; values to fill in are in angle brackets */
  values?: {
    name: string;
    value: string;
  }[];
};

export type ServerEntryRequest = {
  /** as an object of mcpServers in .mcp.json, which has not all keys of servers in tenon.yaml */
  entry: Record<string, unknown>;
  /** the server's name in a registry */
  registry_name?: string;
  dry_run?: boolean;
};

export type ConfigEntries = {
  file: string;
  /** of the file */
  digest: string;
  sections: ConfigSection[];
};

export type ConfigSection = {
  name: string;
  /** absent: named entries; single: one entry with the section's name; list: entries are numbered from 0 */
  kind?: "single" | "list";
  /** of one entry, a JSON Schema */
  schema: Record<string, unknown>;
  /** the only names that entries can have; absent if any name can be used */
  names?: string[];
  /** keys that can hold secrets: they are edited in the file only */
  hidden?: string[];
  entries: ConfigEntry[];
};

export type ConfigEntry = {
  name: string;
  /** the keys as the file has them */
  keys: Record<string, unknown>;
};

export type ConfigEntryRequest = {
  /** the keys to change; a dot leads into an object, a null removes the key */
  keys: Record<string, unknown>;
  /** make a new entry; without it, the entry must exist */
  add?: boolean;
  /** of the file that the change is meant for */
  digest?: string;
  dry_run?: boolean;
};

export type Edited = {
  file: string;
  before: string;
  after: string;
  written: boolean;
  /** all files, if the change writes more than one */
  files?: FileChange[];
};

export type WorkflowText = {
  file: string;
  /** of the file */
  digest: string;
  text: string;
};

export type WorkflowTextRequest = {
  text: string;
  /** of the file that the change is meant for; empty with add */
  digest?: string;
  /** make the file NAME.yaml and an entry of tools */
  add?: boolean;
  dry_run?: boolean;
};

export type DraftRequest = {
  /** the workflow whose file is edited; empty for a new one */
  name?: string;
  text: string;
  changes?: DraftChange[];
};

export type DraftChange = {
  /** keys, and positions in lists from 0 */
  path: unknown[];
  /** null removes the value */
  value: unknown;
};

export type DraftResponse = {
  /** with the changes; only the bytes of changed values differ */
  text: string;
  /** the text as an object; null if it cannot be read */
  value: unknown;
  mistakes: DraftMistake[];
  graph?: WorkflowGraph;
};

export type DraftMistake = {
  file: string;
  /** from 1 */
  line: number;
  /** from 1 */
  column: number;
  path?: string;
  message: string;
  hint?: string;
};

export type AcceptRequest = {
  /** that of the proposal as it was shown */
  digest: string;
};

export type Difference = {
  /** a key of the configuration, such as servers.github.command, or a file */
  path: string;
  layer: "project" | "user" | "admin";
  /** YAML on one line, tokens masked; empty for no value */
  before: string;
  after: string;
  effect: "tightens" | "loosens" | "neutral";
  /** it starts a program, calls an address, sends a secret, or opens tenon */
  starts: boolean;
  /** path is a file, before and after are its sizes and digests */
  file?: boolean;
};

export type FileChange = {
  file: string;
  before: string;
  after: string;
  /** before and after are sizes and digests */
  binary?: boolean;
};

export type Proposal = {
  id: string;
  /** edit: a request wants to change the file; reload: files were changed on disk */
  kind: "edit" | "reload";
  state: "open" | "accepted" | "rejected";
  by?: string;
  created: string;
  expires?: string;
  file: string;
  /** identifies exactly this change */
  digest: string;
  differences: Difference[];
  files: FileChange[];
  /** only the command line may agree */
  command_line: boolean;
  /** the command that shows the change and asks */
  command: string;
  note?: string;
};

export type Failure = {
  code: string;
  message: string;
};

/** something about a tool that is worth knowing before a model does */
export type Finding = {
  level: "error" | "warn" | "info";
  /** absent: every one */
  provider?: string;
  /** absent: the whole list */
  server?: string;
  tool?: string;
  /** JSON pointer into the schema */
  pointer?: string;
  message: string;
};

/** nothing is taken; the body may be left out */
export type Nothing = Record<string, unknown>;

/** A table of rows with its columns. */
export type Table = {
  name: string;
  description?: string;
  columns: TableColumn[];
  rows: number;
  bytes?: number;
  digest?: string;
};

export type TableColumn = {
  name: string;
  /** string, integer, number, boolean, timestamp, binary or list, else Arrow's name */
  type: string;
};

export type RunTable = Table & {
  role: "input" | "step" | "output";
  /** that made it */
  step?: string;
};

export type TableFile = {
  /** project:PATH, a path in the project's folder, or uploaded:NAME */
  id: string;
  name: string;
  source: "project" | "uploaded";
  bytes: number;
  changed: string;
};

export type TableUpload = {
  /** ends with .arrow, .arrows or .tooltable */
  name: string;
  /** in base64 */
  data: string;
};

export type TableRow = {
  index: number;
  id: string;
  /** as texts, null where one is missing; cut after 1,000 bytes */
  cells: (string | null)[];
  /** the whole row, where one was asked for */
  value?: unknown;
};

export type TablePage = {
  columns: TableColumn[];
  rows: TableRow[];
  skipped: number;
  /** rows of the table; -1: they were not counted */
  total: number;
  more: boolean;
};

export type WorkflowPort = {
  name: string;
  description?: string;
  columns?: Record<string, string>;
};

export type WorkflowNode = {
  id: string;
  /** input, output, message, or that of the step */
  kind: string;
  label?: string;
  /** how many arrows lead to it at most, one after another */
  level: number;
};

export type WorkflowGraph = {
  name: string;
  nodes: WorkflowNode[];
  edges: {
    from: string;
    to: string;
  }[];
};

export type Workflow = {
  /** its name in the configuration */
  tool?: string;
  name: string;
  description: string;
  /** a JSON Schema */
  parameters: unknown;
  inputs: WorkflowPort[];
  outputs: WorkflowPort[];
  graph: WorkflowGraph;
};

export type TableInput = {
  /** an Arrow file or stream, in base64 */
  data?: string;
  /** an id of GET /api/v1/tables: project:PATH or uploaded:NAME; only for the owner */
  file?: string;
  /** with table: a table of a run */
  run?: string;
  /** its digest */
  table?: string;
};

export type WorkflowRunRequest = {
  parameters?: Record<string, unknown>;
  /** by port */
  inputs?: Record<string, TableInput>;
};

export type Replay = {
  run: string;
  core: string;
  events: number;
  /** that the journal says were begun */
  commands: number;
  state: RunState;
  same: boolean;
  /** the first place where the two differ */
  mismatch?: string;
};

export type Phase = {
  name: string;
  duration_ms: number;
};

export type Check = {
  area: string;
  name?: string;
  status: "ok" | "warn" | "fail" | "skip";
  text: string;
  /** of the failure */
  code?: string;
  /** what to do */
  remedy?: string;
  phases?: Phase[];
  duration_ms: number;
};

export type DoctorRequest = {
  /** only these, and what they need */
  servers?: string[] | null;
};

export type Frame = {
  seq: number;
  at: string;
  /** by tenon */
  sent: boolean;
  id?: string;
  /** of an answer: that of its request */
  method?: string;
  answer?: boolean;
  bytes: number;
  text: string;
  /** only the beginning is kept */
  cut?: boolean;
  /** why there is no text */
  hidden?: string;
};

export type GatewayClient = {
  /** the client's own word (clientInfo), which proves nothing; may be empty */
  name: string;
  version?: string;
  era: "legacy" | "modern";
  /** the revision that it speaks, such as 2025-11-25 or 2026-07-28 */
  protocol: string;
  principal: string;
  /** an entry of gateway.endpoints; absent: all tools */
  endpoint?: string;
  /** open sessions and connections of a legacy client; a modern client has none */
  sessions: number;
  /** its first request */
  since: string;
  /** its latest request */
  seen: string;
  /** absent if it has called no tool */
  last_call?: string;
  /** calls of tools; a call that the rules did not decide about counts only here */
  calls: number;
  /** calls that the rules allowed */
  allowed: number;
  /** calls that waited for a person */
  asked: number;
  /** calls that the rules denied */
  denied: number;
};

export type GatewayClients = {
  /** where clients reach the gateway; empty if there is none */
  endpoints: GatewayEndpoint[];
  items: GatewayClient[];
};

export type GatewayEndpoint = {
  /** empty for the endpoint with all tools */
  name: string;
  /** the path of its address, such as /mcp/coding */
  path: string;
  description?: string;
  /** servers whose tools it has; without servers, groups and tools it has all */
  servers?: string[];
  /** groups whose tools it has */
  groups?: string[];
  /** globs of further tools that it has */
  tools?: string[];
  /** globs of tools that it does not have */
  exclude?: string[];
  /** search, if clients search the tools; absent if they see all */
  mode?: string;
  /** tools that clients see even in mode search */
  always?: string[];
};
