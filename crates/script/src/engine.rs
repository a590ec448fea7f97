//! The `QuickJS` engine, with the limits of a script.

use std::{
    cell::{Cell, RefCell},
    io,
    rc::Rc,
    time::Duration,
};

use processes::processor_time;
use rquickjs::{CaughtError, Context, Ctx, Function, Object, Runtime};

use crate::{
    advice::{self, instead_of},
    compile::Compiled,
    limits::{
        BYTES_OUT_MAX, LOG_BYTES_MAX, Limit, MEMORY_BYTES_MAX, PROCESSOR_MAX, STACK_BYTES_MAX,
        WALL_MAX,
    },
    message::{Failed, FailureKind, FromScript, Job, ScriptPosition, ToScript},
    names::ServerNames,
};

const PRELUDE: &str = include_str!("prelude.js");

/// The name of a script in the stacks of its errors.
const FILE: &str = "script";

/// The connection to the process that started the script. `receive` blocks.
pub(crate) trait Channel {
    fn receive(&mut self) -> io::Result<Option<ToScript>>;
    fn send(&mut self, message: &FromScript) -> io::Result<()>;
}

/// An engine that has not run a script yet.
pub(crate) struct Engine<'a> {
    job: &'a Job,
    context: Context,
    /// The limit that ended the script.
    met: Rc<Cell<Option<Limit>>>,
}

impl<'a> Engine<'a> {
    pub(crate) fn new(job: &'a Job) -> io::Result<Self> {
        let runtime = Runtime::new().map_err(io::Error::other)?;
        runtime.set_memory_limit(MEMORY_BYTES_MAX);
        runtime.set_max_stack_size(STACK_BYTES_MAX);
        let met = Rc::new(Cell::new(None));
        // The caller's clock is paused while a question to the user is open; this limit counts
        // processor time instead.
        let began = processor_time();
        let wall = Duration::from_millis(job.wall_ms);
        let noted = Rc::clone(&met);
        runtime.set_interrupt_handler(Some(Box::new(move || {
            let used = processor_time().saturating_sub(began);
            let limit = if used > PROCESSOR_MAX {
                Some(Limit::Processor)
            } else {
                (used > wall).then_some(Limit::Wall)
            };
            noted.set(noted.get().or(limit));
            noted.get().is_some()
        })));
        let context = Context::full(&runtime).map_err(io::Error::other)?;
        Ok(Self { job, context, met })
    }

    /// Runs a script, and handles its messages until it has ended.
    pub(crate) fn run(
        &self,
        script: &Compiled,
        channel: &mut dyn Channel,
    ) -> io::Result<FromScript> {
        self.context.with(|ctx| {
            let said: Rc<RefCell<Vec<String>>> = Rc::default();
            let (start, answered) = match self.prepare(&ctx, &said) {
                Ok(functions) => functions,
                Err(error) => return Ok(self.explain(&ctx, &error)),
            };
            let main = match eval(&ctx, &script.javascript, FILE) {
                Ok(main) => main,
                Err(error) => return Ok(unreadable(self.explain(&ctx, &error), script)),
            };
            if let Err(error) = start.call::<_, ()>((main,)) {
                return Ok(self.explain(&ctx, &error));
            }
            let mut log_bytes = 0;
            let mut open = 0_usize;
            loop {
                while self.met.get().is_none() && ctx.execute_pending_job() {}
                if let Some(limit) = self.met.get() {
                    return Ok(FromScript::Exceeded(limit));
                }
                let messages = std::mem::take(&mut *said.borrow_mut());
                for message in messages {
                    match serde_json::from_str(&message).map_err(io::Error::from)? {
                        FromScript::Log(text) => say_log(text, &mut log_bytes, channel)?,
                        asked @ FromScript::Ask(_) => {
                            open += 1;
                            channel.send(&asked)?;
                        }
                        FromScript::Failed(failed) => {
                            let failed = with_advice(failed, &self.job.servers);
                            return Ok(FromScript::Failed(failed));
                        }
                        ended => return Ok(ended),
                    }
                }
                if open == 0 {
                    let text = "it waits for a promise that is never settled".to_owned();
                    return Ok(failed(text, None));
                }
                if let Some(ToScript::Answered {
                    id,
                    answer,
                    is_error,
                }) = channel.receive()?
                {
                    open -= 1;
                    let passed = answered.call::<_, ()>((id, answer.get(), is_error));
                    if let Err(error) = passed {
                        return Ok(self.explain(&ctx, &error));
                    }
                } else {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
            }
        })
    }

    /// Defines the globals. Returns the function that starts a script and the one that passes it an
    /// answer.
    fn prepare<'js>(
        &self,
        ctx: &Ctx<'js>,
        said: &Rc<RefCell<Vec<String>>>,
    ) -> rquickjs::Result<(Function<'js>, Function<'js>)> {
        let (said, met) = (Rc::clone(said), Rc::clone(&self.met));
        let mut bytes = 0;
        let send = Function::new(
            ctx.clone(),
            rquickjs::function::MutFn::from(move |message: String| {
                bytes += message.len();
                if bytes > BYTES_OUT_MAX {
                    met.set(Some(Limit::BytesOut));
                } else {
                    said.borrow_mut().push(message);
                }
            }),
        )?;
        let instead = Function::new(ctx.clone(), |name: String| {
            instead_of(&name).unwrap_or_default()
        })?;
        let job = Object::new(ctx.clone())?;
        let names = serde_json::to_string(&ServerNames::new(&self.job.servers));
        job.set("servers", self.job.servers.clone())?;
        job.set("names", names.unwrap_or_default())?;
        job.set("tools", self.job.tools.get())?;
        job.set("args", self.job.args.get())?;
        job.set("dry_run", self.job.dry_run)?;
        job.set("sleep_ms_max", WALL_MAX.as_secs_f64() * 1_000.0)?;
        let prelude = eval(ctx, PRELUDE, "prelude")?;
        let parts: Object<'js> = prelude.call((send, job, instead))?;
        Ok((parts.get("start")?, parts.get("answered")?))
    }

    fn explain(&self, ctx: &Ctx<'_>, error: &rquickjs::Error) -> FromScript {
        if let Some(limit) = self.met.get() {
            return FromScript::Exceeded(limit);
        }
        let error = match error {
            rquickjs::Error::Exception => rquickjs::Error::Exception,
            other => rquickjs::Error::new_from_js_message("script", "value", other.to_string()),
        };
        let caught = CaughtError::from_error(ctx, error);
        let CaughtError::Exception(exception) = &caught else {
            // If there is no memory for an error, the engine throws null.
            let is_null = matches!(&caught, CaughtError::Value(value) if value.is_null());
            return if is_null {
                FromScript::Exceeded(Limit::Memory)
            } else {
                failed(caught.to_string(), None)
            };
        };
        let name: Option<String> = exception.as_object().get("name").ok();
        let name = name.as_deref().unwrap_or("Error");
        let message = exception.message().unwrap_or_default();
        // No code of the script has run when this is called, so the errors are the engine's.
        match (name, message.as_str()) {
            ("InternalError", "out of memory") => FromScript::Exceeded(Limit::Memory),
            ("RangeError", "Maximum call stack size exceeded") => {
                FromScript::Exceeded(Limit::Depth)
            }
            _ => {
                let stack = exception.stack().unwrap_or_default();
                failed(format!("{name}: {message}"), place_in(&stack))
            }
        }
    }
}

/// Returns the first place of the script in the stack of an error: `at script:2:14`.
fn place_in(stack: &str) -> Option<ScriptPosition> {
    let (_, at) = stack.split_once(&format!("{FILE}:"))?;
    let mut numbers = at.splitn(3, |c: char| !c.is_ascii_digit());
    let line = numbers.next()?.parse().ok()?;
    let column = numbers.next().and_then(|it| it.parse().ok());
    Some(ScriptPosition { line, column })
}

fn eval<'js>(ctx: &Ctx<'js>, script: &str, file: &str) -> rquickjs::Result<Function<'js>> {
    let mut options = rquickjs::context::EvalOptions::default();
    options.filename = Some(file.to_owned());
    options.strict = true;
    ctx.eval_with_options(script, options)
}

fn failed(text: String, place: Option<ScriptPosition>) -> FromScript {
    let kind = FailureKind::Thrown;
    FromScript::Failed(Failed { text, place, kind })
}

/// Adds the replacement for an undefined name to an error.
fn with_advice(failed: Failed, servers: &[String]) -> Failed {
    if failed.kind != FailureKind::Undefined {
        return failed;
    }
    let advice = advice::for_error(&failed.text);
    let advice = advice.map_or_else(|| advice::name_servers(servers), str::to_owned);
    Failed {
        text: format!("{}; {advice}", failed.text),
        ..failed
    }
}

/// Extends the engine's error for a script that it cannot parse: it may be in another language, or have
/// text around it.
fn unreadable(said: FromScript, script: &Compiled) -> FromScript {
    match said {
        FromScript::Failed(Failed { text, place, .. }) => FromScript::Failed(Failed {
            text: format!("{text}; {}", advice::TYPESCRIPT_ALONE),
            place: place.map(|at| script.place(at.line, at.column)),
            kind: FailureKind::Unreadable,
        }),
        other => other,
    }
}

fn say_log(text: String, bytes: &mut usize, channel: &mut dyn Channel) -> io::Result<()> {
    let left = LOG_BYTES_MAX.saturating_sub(*bytes);
    *bytes += text.len() + 1;
    if left == 0 {
        return Ok(());
    }
    let text = if text.len() > left {
        format!("{}… [the log is full]", printable::first_chars(&text, left))
    } else {
        text
    };
    channel.send(&FromScript::Log(text))
}
