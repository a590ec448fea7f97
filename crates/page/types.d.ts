/** Types of the answers of `/api/v1`, known in every module, for the checker of the page; no code, and not served. `openapi.json` has
 * the whole of them. */

type Process = {client_name?: string|null, state: string, pid?: number|null, memory_bytes?: number|null, protocol?: string|null,
  starts: number, last_failure?: string|null, last_failure_at?: number|null, waiting_calls: number};

type Server = {name: string, state: string, why?: string|null, next_step?: string|null, enabled: boolean, is_remote?: boolean,
  category?: string|null, tools: number, tokens: number, calls: number, errors: number, calls_30_days?: number, errors_30_days?: number, last_used_at?: number|null,
  login?: {issuer: string}|null, login_address?: string|null, starts?: number, memory_bytes?: number|null,
  processes: Process[]};

type Survey = {at: number, added: string[], changed: string[], removed: string[], version?: [string, string]|null};

type ServerDetail = {server: Server, launch: {kind: string, text: string}, log: string[], history: Survey[], sandbox?: string|null,
  tools: {name: string, tokens: number, purpose: string}[], prompts: number, resources: number, server_version?: string|null,
  instructions?: string|null};

type Client = {number: number, name?: string|null, version?: string|null, transport: string, pid?: number|null, cwd?: string|null,
  since: number, calls: number, caller?: string|null, rule?: string|null, protocol?: string|null, profiles?: string[], servers?: string[], max_result_tokens?: number};

type Running = {id: string|number, tool: string, client?: string|null, transport?: string, since_ms: number, parent?: number|null};

type Attention = {kind: string, server?: string|null, title: string, detail?: string|null, next_step?: string|null, since_at?:
  number|null, count?: number, question?: Question|null};

type Daemon = {version: string, pid: number,
  config_mistakes?: string|null, is_whole: boolean, config_number?: number, catalog_number?: number};

type Counts = {calls: number, errors: number};

type State = {daemon: Map<string, Daemon>, servers: Map<string, Server>, clients: Map<string, Client>, running: Map<string,
  Running>, attention: Map<string, Attention>, minutes: Map<string, Counts>, totals: Map<string, Counts>};

type Hit = {name: string, purpose?: string, description?: string, category?: string|null, server?: string, tags?: string[],
  signature?: string, relevance_score?: number, evidence?: {label: string, amount: number}[], perhaps?: boolean, also_on?: string[],
  changed?: boolean, hidden?: boolean};

type Found = {found: number, total?: number, tools?: Hit[], message?: string, suggestion?: string, categories?: {name: string,
  tools: number}[], without_filter?: Hit[], being_asked?: string[]};

type Schema = {[key: string]: any};

type Tool = {name: string, server: string, server_version?: string|null, title?: string|null, description: string, usage?:
  string|null, remarks?: string[], deprecated?: any, signature: string, category?: string|null, tags?: string[], changed?: boolean,
  login_required?: boolean, used?: number, last_used?: any, input_schema?: Schema, output_schema?: Schema|null, example?: {tool_name:
  string, tool_input: object}|null, notes?: string|null, annotations?: {[key: string]: any}|null};

type Review = {name: string, server: string, kind: string, tool?: string|null, digest: string, state: string, before?: string|null,
  now: string, signs: string[], held: boolean};

type Call = {n: number, lost?: number, at: string, client?: string, caller?: string, session?: number, transport?: string, server:
  string, tool?: string, prompt?: string, resource?: string, decision?: string, rule?: number|null, outcome: string, bytes_in?: number,
  bytes?: number, tokens?: number, ms: number, cut?: boolean, redacted?: number, handle?: string, arguments?: object|string|null, command?: string, run?:
  string, parent?: string};

type Line = {name: string, calls: number, errors: {[code: string]: number}, p50_us?: number|null, p95_us?: number|null, tokens_in:
  number, tokens_out: number, tokens_cut: number, cuts: number, redacted: number, tokens_saved?: number};

type FiguresAnswer = {lines: Line[], total: Line, sessions: number, tokens_saved_by_definitions: number, tokens_saved_by_scripts: number,
  scripts: number, searches: number, searches_without_hit: number, asked_without_hit: {words: string, count: number}[], categories: {name:
  string, calls: number}[]};

type Rule = {[key: string]: any};

type NumberedRule = {number: number, rule: Rule, hits: number, idle?: string|null, next_step?: string|null};

type Change = {id: number, at: number, message: string, diff?: string|null, can_undo: boolean};

type Quota = {number: number, quota: Rule, about: string, limit: number, uses: {counted?: string|null, used: number, resets_at: number}[]};

type ConfigurationAnswer = {file: string, mistakes?: string|null, policy: string, rules: NumberedRule[], hits_among: number, quotas: Quota[], changes:
  Change[]};

type Need = {name: string, what: string, origin?: string|null, is_secret?: boolean, is_parameter?: boolean};

type Recipe = {name: string, what: string, login?: boolean, needs: Need[], deprecated?:
  string|null};

type Done = {message: string, undo?: number|null, diff?: string|null, name?: string};

type Question = {id: number, schema?: Schema|null, address?: string|null};
