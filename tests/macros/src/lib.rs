//! [`macro@journey`], in a crate of its own because Rust wants it so.

use proc_macro::{TokenStream, TokenTree};

/// A journey that is played twice: each session by itself, and with a daemon behind them all.
///
/// `#[journey(alone = "why")]` is played once. In some folders of journeys every test is a
/// journey; `declared.rs` says which, so that none is forgotten.
#[proc_macro_attribute]
pub fn journey(arguments: TokenStream, item: TokenStream) -> TokenStream {
    match around(&arguments.to_string(), &item) {
        // The item itself, not its text: the lines of a failure are those of the file.
        Ok((before, after)) => before.into_iter().chain(item).chain(after).collect(),
        Err(why) => code(&format!("compile_error!({why:?});")),
    }
}

/// The code before a journey and after it.
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
    text.parse().expect("what we write is Rust")
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
