// The globals of a script. `send` sends a message to our process, `job` has the settings; answers are
// passed to the function that this returns.
((send, job, instead) => {
  "use strict";
  const { parse, stringify } = JSON;
  const say = (message) => send(stringify(message));
  // Our process reads valid Unicode only, without lone surrogates.
  const textFrom = (value) => String(value).toWellFormed();
  const waiting = new Map();
  const unheard = new Set();
  let next = 0;

  // A promise that records if it is awaited: failures of others are reported in the log.
  const later = (promise, raw) => {
    const state = { promise };
    unheard.add(state);
    const heard = () => (unheard.delete(state), promise);
    const thenable = {
      then: (ok, no) => heard().then(ok, no),
      catch: (no) => heard().catch(no),
      finally: (done) => heard().finally(done),
    };
    if (raw) Object.defineProperty(thenable, "raw", { get: () => (heard(), later(raw())) });
    return thenable;
  };

  const ask = (what) =>
    new Promise((resolve, reject) => {
      const id = next++;
      waiting.set(id, { resolve, reject });
      say({ ask: { id, what } });
    });

  class ToolError extends Error {
    constructor({ code, server, tool, text }) {
      super(text);
      Object.assign(this, { name: "ToolError", code, server, tool, text });
    }
  }

  // Errors of our process: their text is its own.
  const refusals = new WeakSet();
  const answered = (id, answer, isError) => {
    const { resolve, reject } = waiting.get(id);
    waiting.delete(id);
    const value = parse(answer);
    if (!isError) return resolve(value);
    const refusal = new ToolError(value);
    refusals.add(refusal);
    return reject(refusal);
  };

  // Errors that a script constructs are recorded, to distinguish them from those of the engine.
  const constructed = new WeakSet();
  const remembered = (error) => (constructed.add(error), error);
  const engineErrors = {};
  for (const name of ["InternalError", "RangeError", "ReferenceError"]) {
    const { prototype } = (engineErrors[name] = globalThis[name]);
    const value = new Proxy(engineErrors[name], {
      construct: (target, values, made) => remembered(Reflect.construct(target, values, made)),
      apply: (target, _, values) => remembered(target(...values)),
    });
    Object.defineProperty(prototype, "constructor", { value, configurable: true, writable: true });
    Object.defineProperty(globalThis, name, { value, configurable: true, writable: true });
  }
  const isEngineError = (error, name) =>
    error instanceof Error && Object.getPrototypeOf(error) === engineErrors[name].prototype && !constructed.has(error);

  // An error from our process is reported with the line of the call.
  const placed = (promise, { stack } = new Error()) =>
    promise.catch((error) => {
      error.stack = stack;
      throw error;
    });

  const isObject = (value) => value !== null && typeof value === "object" && !Array.isArray(value);

  // One text is not copied: it may be large.
  const textOf = (result) => {
    const texts = (result.content ?? []).map((block) => block.text ?? block.resource?.text).filter((text) => text !== undefined);
    return texts.length === 1 ? texts[0] : texts.join("\n");
  };

  const lineOf = (error) => {
    const line = /script:(\d+)/.exec(error?.stack ?? "");
    return line ? Number(line[1]) : null;
  };

  // Missing members that a script read from the value of a tool, by tool and member.
  const missing = new Map();
  // Members that some value of a tool had: they may be missing in other values.
  const seen = new Set();
  const memberNames = new Set();
  const TEXT = "a text";
  const isPlace = (key) => /^-?\d+$/.test(key);
  const noteMissing = (of, key, says) => {
    const id = `${of} ${key}`;
    if (missing.size < 5 && !missing.has(id)) missing.set(id, { line: lineOf(new Error()), of, key, says });
  };
  // `it.content ?? it` tests for text, if other values have the member.
  const isExpected = (id, of, key) => seen.has(id) || (of === TEXT && memberNames.has(key));
  const tellMissing = () => {
    for (const [id, { line, of, key, says }] of missing)
      if (!isExpected(id, of, key)) print(`note: ${line ? `line ${line}: ` : ""}${of} has no "${key}"; ${says}`);
    missing.clear();
  };
  const inherits = (base, members) =>
    Object.create(base, Object.fromEntries(Object.entries(members).map(([name, value]) => [name, { value, configurable: true, writable: true }])));
  // A proxy in the prototype chain of a value is notified of missing members.
  const behind = (base, note) =>
    new Proxy(base, {
      get: (base, key, value) => {
        if (typeof key !== "symbol" && !(key in base) && key !== "then" && key !== "toJSON" && !isPlace(key)) note(key, value);
        return Reflect.get(base, key, value);
      },
    });
  const membersOf = (value) => Object.keys(value).slice(0, 12).join(", ") || "no members";
  const behindValues = Object.create(null);
  const behindValuesOf = (of) =>
    (behindValues[of] ??= {
      list: behind(inherits(Array.prototype, {}), (key, value) => noteMissing(of, key, `it is a list of ${value.length}`)),
      object: behind(
        inherits(Object.prototype, {
          toString() {
            throw new TypeError(`${of} is an object with ${membersOf(this)}, not text; take a member of it, or JSON.stringify(value)`);
          },
        }),
        (key, value) => noteMissing(of, key, `it has ${membersOf(value)}`),
      ),
    });
  const watched = (value, name) => {
    if (value === null || typeof value !== "object") return value;
    const of = `the value of ${name}`;
    const { list, object } = behindValuesOf(of);
    if (Array.isArray(value)) return Object.setPrototypeOf(value, list);
    for (const key of Object.keys(value)) {
      seen.add(`${of} ${key}`);
      memberNames.add(key);
    }
    return Object.setPrototypeOf(value, object);
  };
  Object.setPrototypeOf(String.prototype, behind(Object.prototype, (key) => noteMissing(TEXT, key, "use its methods, or JSON.parse(text)")));

  // Structured content, else text that is JSON, else text.
  const valueOf = (result, server, tool) => {
    const text = textOf(result);
    if (result.isError) throw new ToolError({ code: "tool_error", server, tool, text });
    if (result.structuredContent !== undefined) return result.structuredContent;
    const blocks = result.content ?? [];
    if (blocks.length > 0 && !blocks.some((block) => block.type === "text" || block.resource?.text))
      return blocks.length === 1 ? blocks[0] : blocks;
    if (!/^\s*[\[{"\d\-tfn]/.test(text)) return text;
    try {
      const value = parse(text);
      // A number that the language cannot hold, as a long id, stays text.
      return typeof value === "number" && String(value) !== text.trim() ? text : value;
    } catch {
      return text;
    }
  };

  // What a call that is not made answers: anything that is read from it is the same again.
  const placeholder = (name) =>
    new Proxy(function () {}, {
      get: (_, key) => {
        if (key === Symbol.toPrimitive) return () => `<${name}>`;
        if (key === Symbol.iterator) return function* () {};
        if (key === "then") return undefined;
        if (key === "toJSON") return () => `<${name}>`;
        if (key === "length") return 0;
        if (["map", "filter", "flatMap", "slice", "sort", "reverse", "concat"].includes(key)) return () => [];
        if (key === "forEach") return () => undefined;
        return placeholder(`${name}.${String(key)}`);
      },
      apply: () => placeholder(`${name}()`),
    });

  const toolOf = (server, tool) => {
    const call = (input, ...more) => {
      if (input === undefined || input === null) input = {};
      if (!isObject(input) || more.length > 0)
        throw new TypeError(`${server}.${tool} takes one object, as in ${tool}({ name: value }); await describe("${server}/${tool}") shows which`);
      const full = ask({ call: { tool: textFrom(`${server}/${tool}`), input } });
      if (job.dry_run) return later(full.then(() => placeholder(`${server}.${tool}`)), () => full);
      return later(
        placed(full.then((result) => watched(valueOf(result, server, tool), `${server}.${tool}`))),
        () => placed(full),
      );
    };
    return call;
  };

  let toolNames;
  const listNames = (server) => (toolNames ??= parse(job.tools))[server] ?? [];
  const objectOf = (server) =>
    new Proxy(Object.create(null), {
      get: (made, tool) => {
        if (typeof tool === "symbol" || tool === "then" || tool === "toJSON") return undefined;
        return (made[tool] ??= toolOf(server, tool));
      },
      has: (_, tool) => listNames(server).includes(tool),
      ownKeys: () => listNames(server),
      getOwnPropertyDescriptor: (made, tool) =>
        listNames(server).includes(tool)
          ? { value: (made[tool] ??= toolOf(server, tool)), configurable: true, enumerable: true, writable: true }
          : undefined,
      set: () => {
        throw new TypeError(`${server} is a server: nothing can be put into it`);
      },
    });

  const shown = (value) => {
    if (typeof value === "string") return value;
    if (value instanceof Error) return `${value.name}: ${value.message}`;
    try {
      return stringify(value, plain) ?? String(value);
    } catch {
      return String(value);
    }
  };

  const plain = (_, value) => {
    if (value instanceof Map) return Object.fromEntries(value);
    if (value instanceof Set) return [...value];
    if (value instanceof Error) return `${value.name}: ${value.message}`;
    if (typeof value === "bigint") return value.toString();
    return value;
  };

  const print = (...values) => say({ log: textFrom(values.map(shown).join(" ")) });
  const own = (tool, input) => objectOf("proxy")[tool](input);

  // Read as it is asked for: no more than a chunk of it lies in the script's memory.
  const chunks = async function* (handle) {
    for (let from = 0; from !== null; ) {
      const { text, next } = await placed(ask({ chunk: { handle, from } }));
      yield text;
      from = next;
    }
  };

  const lines = async function* (handle, offset, limit) {
    let rest = "", at = 0;
    const wanted = () => at++ >= offset && at <= offset + limit;
    for await (const text of chunks(handle)) {
      const whole = (rest + text).split("\n");
      rest = whole.pop();
      for (const line of whole) {
        if (wanted()) yield line;
        else if (at > offset) return;
      }
    }
    if (rest !== "" && wanted()) yield rest;
  };

  // `for await` takes it piece by piece, `await` all of it.
  const stream = (begin, join) => {
    const all = async () => {
      const pieces = [];
      for await (const piece of begin()) pieces.push(piece);
      return join(pieces);
    };
    return { [Symbol.asyncIterator]: begin, then: (ok, no) => all().then(ok, no) };
  };

  const result = (handle) => {
    handle = textFrom(handle);
    const read = (how) => own("read_result", { handle, ...how });
    const removed = (name, instead) => () => {
      throw new Error(`result(handle).${name} was removed; use ${instead}`);
    };
    return {
      [Symbol.asyncIterator]: () => chunks(handle),
      chunks: () => stream(() => chunks(handle), (all) => all),
      text: () => stream(() => chunks(handle), (all) => all.join("")),
      json: () => stream(() => chunks(handle), (all) => parse(all.join(""))),
      jq: (select) => read({ select }),
      pointer: removed("pointer", "jq(filter), such as .items[3].name"),
      grep: (pattern) => read({ grep: pattern }),
      find: removed("find", "grep(pattern)"),
      lines: (offset = 0, limit = Infinity) => stream(() => lines(handle, offset, limit), (all) => all),
      bytes: (offset = 0, limit = 65536) => read({ offset, limit, unit: "bytes" }),
      part: (part) => read({ part }),
    };
  };

  const verbs = (verb) => (path, text) => {
    if (text !== undefined) text = textFrom(typeof text === "string" ? text : stringify(text));
    return later(placed(ask({ workspace: { verb, path: textFrom(path ?? ""), text } })));
  };
  const workspace = Object.fromEntries(["read", "write", "append", "list", "exists", "remove"].map((verb) => [verb, verbs(verb)]));
  workspace.readJSON = (path) =>
    later(
      placed(
        workspace.read(path).then((text) => {
          try {
            return parse(text);
          } catch (error) {
            throw new SyntaxError(`${path} is not JSON: ${error.message}`);
          }
        }),
      ),
    );
  workspace.writeJSON = (path, value) => workspace.write(path, stringify(value, plain) ?? "null");

  // The two functions of node's fs/promises that suffice for files of the workspace.
  const below = (path) => {
    const [, rest] = /^(?:\.\/)?workspace\/([^]+)$/.exec(path) ?? [];
    if (rest === undefined)
      throw new Error(`fs has the files below ./workspace only, such as ./workspace/notes/today.md, and "${path}" is not one; for others call a tool of a server`);
    return rest;
  };
  const file = (act) => (path, ...rest) => later(placed((async () => act(below(textFrom(path)), ...rest))()));
  const checkOptions = (options) => {
    for (const [name, value] of Object.entries(typeof options === "string" ? { encoding: options } : options ?? {}))
      if (name !== "encoding" || !/^utf-?8$/i.test(value)) throw new TypeError(`fs has no ${name} ${shown(value)}; a file is text in UTF-8`);
  };
  const files = {
    readFile: file((path, options) => (checkOptions(options), workspace.read(path))),
    writeFile: file((path, text, options) => (checkOptions(options), workspace.write(path, text))),
  };
  const fs = new Proxy(files, {
    get: (known, name) => {
      if (typeof name === "symbol" || name in known || name === "then" || name === "toJSON") return known[name];
      if (name === "promises" || name === "default") return fs;
      throw new ReferenceError(`there is no fs.${name}; there are fs.readFile and fs.writeFile, and workspace.append, list, exists and remove`);
    },
  });

  const sleep = (ms) => {
    const wait = Number(ms);
    if (!(wait >= 0 && wait <= job.sleep_ms_max))
      throw new RangeError(`sleep(ms) takes milliseconds from 0 to ${job.sleep_ms_max}; got ${shown(ms)}`);
    return later(ask({ sleep: { ms: Math.round(wait) } }));
  };
  const tools = Object.create(null);
  for (const server of job.servers) tools[server] = objectOf(server);
  const names = Object.assign(Object.create(null), parse(job.names));
  // The name of a tool or server, as the gateway has it.
  const addressOf = (name) => {
    const [, server, rest] = /^([^/]*)([^]*)$/.exec(textFrom(name));
    return (names[server]?.Ok ?? server) + rest;
  };
  const list = (server) => {
    // An unknown server is an error.
    if (server !== undefined) void globals.tools[server];
    return later(placed(ask({ list: { server: server === undefined ? null : addressOf(server) } })));
  };

  const globals = {
    tools: new Proxy(tools, {
      get: (known, name) => {
        if (typeof name === "symbol" || name in known) return known[name];
        const { Ok: server, Err: why } = names[name] ?? {};
        if (server) return known[server];
        if (name === "list") return list;
        throw new ReferenceError(why ?? `there is no server "${name}"; there are ${job.servers.join(", ")}`);
      },
    }),
    args: parse(job.args),
    search: (query) => later(placed(ask({ search: { query: textFrom(query) } }))),
    describe: (name) => later(placed(ask({ describe: { name: addressOf(name) } }))),
    help: (name) => {
      const members = ({ name, description, input_schema, output_schema, example }) => ({ name, description, input_schema, output_schema, example });
      if (name !== undefined) return later(placed(ask({ help: { name: addressOf(name) } }).then(members)));
      return `Servers are globals: ${job.servers.map((it) => it.replaceAll("-", "_")).join(", ")}. ` +
      "await server.tool({...}) is the tool's value: its structuredContent (a hit shows its members behind ->), else its text, parsed where it is JSON; " +
      "await server.tool({...}).raw is its whole result; " +
      'tools["server"]["tool"]({...}) for other names; a tool error is thrown with code, server and text. ' +
      'search(words), describe(name), help("server/tool") is {name, description, input_schema, output_schema, example}, tools.list(server), Object.keys(server), ' +
      "for await (const line of result(handle).lines()), result(handle).jq(filter), workspace.read/write/append/list/exists/remove/readJSON/writeJSON(path, text), " +
      "sleep(ms), print(...), args. The last expression, or what is returned, is the answer.";
    },
    print,
    console: { log: print, info: print, warn: print, error: print, debug: print },
    result,
    workspace,
    sleep,
    setTimeout: (then, ms, ...values) => void sleep(Math.max(0, Number(ms) || 0)).then(() => then(...values)),
    structuredClone: (value) => parse(stringify(value)),
  };
  if (!names.fs) globals.fs = fs;
  for (const [name, { Ok: server, Err: why }] of Object.entries(names)) {
    if (name in globals || name in globalThis) continue;
    if (server) globals[name] = tools[server];
    else
      Object.defineProperty(globalThis, name, {
        get() {
          throw new ReferenceError(why);
        },
        configurable: true,
      });
  }
  for (const [name, value] of Object.entries(globals))
    Object.defineProperty(globalThis, name, { value, configurable: true, writable: true });

  // No text becomes code.
  const refuse = (name) =>
    function () {
      throw new Error(instead(name));
    };
  const functions = [function () {}, async function () {}, function* () {}, async function* () {}];
  for (const made of functions)
    Object.defineProperty(Object.getPrototypeOf(made), "constructor", { value: refuse("Function") });
  globalThis.eval = refuse("eval");
  globalThis.Function = refuse("Function");

  // Where there is no memory left for an error, the engine throws null; a script that does is known by it.
  let threwNull = false;
  const thrown = (value) => ((threwNull ||= value === null), value);
  Object.defineProperty(globalThis, "$thrown", { value: thrown });
  const { reject } = Promise;
  Promise.reject = function (value) {
    return reject.call(this, thrown(value));
  };
  const MEMORY = ["out of memory", "out of memory in regexp execution", "string too long", "invalid string length"];
  const kindOf = (error) => {
    if (error === null) return threwNull ? "thrown" : "memory";
    if (refusals.has(error)) return "refused";
    if (isEngineError(error, "ReferenceError")) return "undefined";
    if (!isEngineError(error, "InternalError") && !isEngineError(error, "RangeError")) return "thrown";
    if (error.message === "Maximum call stack size exceeded") return "depth";
    return MEMORY.includes(error.message) ? "memory" : "thrown";
  };
  const fail = (error) => {
    const kind = kindOf(error);
    if (kind === "memory" || kind === "depth") return say({ exceeded: kind });
    tellMissing();
    const text =
      error === null ? "null was thrown; throw an Error" : error instanceof Error ? `${error.name}: ${error.message}` : shown(error);
    const line = lineOf(error);
    say({ failed: { text: textFrom(text), place: line ? { line, column: null } : null, kind } });
  };

  // Calls that nobody waited for are made all the same; were they in vain, the log says so.
  const settle = async () => {
    while (unheard.size > 0) {
      for (const state of [...unheard]) {
        unheard.delete(state);
        await state.promise.catch((error) => print(`not awaited, and failed: ${shown(error)}`));
      }
    }
  };

  const start = (main) => {
    main().then(async (value) => {
      await settle();
      const text = stringify(value, plain) ?? "null";
      tellMissing();
      send(`{"done":${text}}`);
    }).catch(fail);
  };

  return { start, answered };
})
