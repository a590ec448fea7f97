//! [`macro@journey`], in a crate of its own because procedural macros need one.

use proc_macro::{TokenStream, TokenTree};

/// Plays a journey twice: each session standalone, and with a daemon behind all sessions.
///
/// `#[journey(alone = "why")]` is played once. In some folders every test must be a journey;
/// `declared.rs` lists the folders and checks them.
#[proc_macro_attribute]
pub fn journey(arguments: TokenStream, item: TokenStream) -> TokenStream {
    match around(&arguments.to_string(), &item) {
        // The item itself, not its text, so that a failure has the line numbers of the file.
        Ok((before, after)) => before.into_iter().chain(item).chain(after).collect(),
        Err(why) => code(&format!("compile_error!({why:?});")),
    }
}

/// The code before and after a journey.
fn around(arguments: &str, item: &TokenStream) -> Result<(TokenStream, TokenStream), String> {
    let test = code("#[::tokio::test]");
    if let Some(why) = arguments.strip_prefix("alone") {
        let why = why.trim().trim_start_matches('=').trim();
        if why.len() <= "\"\"".len() || !why.starts_with('"') {
            return Err("say why: #[journey(alone = \"...\")]".to_owned());
        }
        return Ok((test, TokenStream::new()));
    }
    if !arguments.is_empty() {
        return Err(format!("`{arguments}`: there is only `alone = \"why\"`"));
    }
    let name = name(item).ok_or("a journey is an `async fn`")?;
    let again = format!(
        "mod {name} {{
            #[test]
            fn through_daemon() {{ ::journeys::house::through_daemon(super::{name}); }}
        }}"
    );
    Ok((test, code(&again)))
}

fn code(text: &str) -> TokenStream {
    text.parse().expect("the generated code is Rust")
}

fn name(item: &TokenStream) -> Option<String> {
    let mut tokens = item.clone().into_iter();
    let is_fn = |token: &TokenTree| matches!(token, TokenTree::Ident(it) if it.to_string() == "fn");
    tokens.find(is_fn)?;
    match tokens.next()? {
        TokenTree::Ident(name) => Some(name.to_string()),
        _ => None,
    }
}
