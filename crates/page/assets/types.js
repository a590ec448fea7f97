/**
 * Types of the answers of `/api/v1`, for the checker; no code. `openapi.json` has the whole of them.
 *
 * @typedef {{client_name?: string|null, state: string, pid?: number|null, memory_bytes?: number|null, protocol?: string|null,
 *   starts: number, calls: number, errors: number, last_error?: string|null, last_error_at?: number|null}} Process
 * @typedef {{name: string, state: string, why?: string|null, next_step?: string|null, enabled: boolean, is_remote?: boolean,
 *   category?: string|null, tools: number, tokens: number, calls: number, calls_all?: number, errors: number,
 *   last_used_at?: number|null, login_required?: boolean, login?: string|null, starts?: number,
 *   memory_bytes?: number|null, processes: Process[]}} Server
 * @typedef {{at: number, added: string[], changed: string[], removed: string[], version?: [string, string]|null}} Survey
 * @typedef {{server: Server, launch: {kind: string, text: string}, log: string[], history: Survey[], sandbox?: string|null,
 *   tools: {name: string, tokens: number, purpose: string}[], prompts: number, resources: number, server_version?: string|null,
 *   instructions?: string|null, up_front_tokens: number}} ServerDetail
 * @typedef {{number: number, name?: string|null, version?: string|null, transport: string, pid?: number|null, cwd?: string|null,
 *   since_at: number, calls: number, caller?: string|null, rule?: string|null, servers?: string[],
 *   max_result_tokens?: number}} Client
 * @typedef {{id: string|number, tool: string, client?: string|null, transport?: string, since_ms: number, is_script?: boolean,
 *   parent?: string|number|null}} Running
 * @typedef {{kind: string, server?: string|null, title: string, detail?: string|null, next_step?: string|null,
 *   since_at?: number|null, count?: number}} Attention
 * @typedef {{version: string, pid: number, started_at: number, config: string, state_dir: string, memory_bytes?: number|null,
 *   config_mistakes?: string|null, pins?: string|null, is_leaving?: boolean, config_number?: number,
 *   catalog_number?: number}} Daemon
 * @typedef {{calls: number, errors: number}} Counts
 * @typedef {{daemon: Map<string, Daemon>, servers: Map<string, Server>, clients: Map<string, Client>, running: Map<string, Running>,
 *   attention: Map<string, Attention>, minutes: Map<string, Counts>, totals: Map<string, Counts>}} State
 * @typedef {{name: string, purpose?: string, description?: string, category?: string|null, server?: string, tags?: string[],
 *   signature?: string, relevance_score?: number, evidence?: {label: string, amount: number}[], perhaps?: boolean,
 *   also_on?: string[], changed?: boolean, hidden?: boolean}} Hit
 * @typedef {{found: number, total?: number, tools?: Hit[], message?: string, suggestion?: string,
 *   categories?: {name: string, tools: number}[], without_filter?: Hit[], being_asked?: string[]}} Found
 * @typedef {{[key: string]: any}} Schema
 * @typedef {{name: string, server: string, server_version?: string|null, title?: string|null, description: string,
 *   usage?: string|null, remarks?: string[], deprecated?: any, signature: string, category?: string|null, tags?: string[],
 *   changed?: boolean, login_required?: boolean, used?: number, last_used?: any, input_schema?: Schema, output_schema?: Schema|null,
 *   example?: {tool_name: string, tool_input: object}|null, notes?: string|null, annotations?: {[key: string]: any}|null}} Tool
 * @typedef {{name: string, server: string, kind: string, tool?: string|null, digest: string, state: string, before?: string|null,
 *   now: string, signs: string[]}} Review
 * @typedef {{n: number, lost?: number, at: string, client?: string, caller?: string, session?: number, transport?: string,
 *   server: string, tool?: string, prompt?: string, resource?: string, decision?: string, rule?: number|null, outcome: string,
 *   bytes_in?: number, bytes?: number, tokens?: number, ms: number, cut?: boolean, handle?: string,
 *   arguments?: object|string|null, command?: string, parent?: number|null}} Call
 * @typedef {{name: string, calls: number, errors: {[code: string]: number}, p50_us?: number|null, p95_us?: number|null,
 *   tokens_in: number, tokens_out: number, tokens_cut: number, cuts: number, tokens_saved?: number}} Line
 * @typedef {{lines: Line[], total: Line, sessions: number, tokens_saved_by_definitions: number, tokens_saved_by_scripts: number,
 *   scripts: number, searches: number, searches_without_hit: number, asked_without_hit: {words: string, count: number}[],
 *   categories: {name: string, calls: number}[]}} Figures
 * @typedef {{[key: string]: any}} Rule
 * @typedef {{number: number, rule: Rule, hits: number, idle?: string|null, next_step?: string|null}} NumberedRule
 * @typedef {{id: number, at: number, message: string, diff?: string|null, can_undo: boolean}} Change
 * @typedef {{file: string, mistakes?: string|null, policy: string, rules: NumberedRule[], hits_among: number, changes: Change[]}} Configuration
 * @typedef {{name: string, what: string, origin?: string|null, is_secret?: boolean, is_parameter?: boolean}} Need
 * @typedef {{name: string, what: string, kind?: string, is_remote?: boolean, login?: boolean, needs: Need[], deprecated?: string|null}} Recipe
 * @typedef {{message: string, undo?: number|null, diff?: string|null, name?: string}} Done
 */
export {};
