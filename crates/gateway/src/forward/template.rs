//! Matches URIs against a template (RFC 6570). The match is lenient: the server decides.

/// The most expressions of one template; a template with more matches nothing.
const EXPRESSIONS_MAX: usize = 32;

/// The longest URI that is compared, in bytes.
const URI_BYTES_MAX: usize = 8 * 1024;

enum TemplatePart<'t> {
    Literal(&'t str),
    /// At least one character, and no separator of a URI.
    Segment,
    /// At least one character, of any kind.
    Path,
    /// Any text, or none.
    Rest,
}

/// The number of literal characters of the template, if the URI matches it.
pub(super) fn fit(template: &str, uri: &str) -> Option<usize> {
    let pieces = pieces(template)?;
    if uri.len() > URI_BYTES_MAX {
        return None;
    }
    let bytes = uri.as_bytes();
    let mut reached = vec![false; bytes.len() + 1];
    reached[0] = true;
    let mut literal = 0;
    for piece in &pieces {
        reached = match piece {
            TemplatePart::Literal(text) => {
                literal += text.len();
                after_literal(&reached, bytes, text.as_bytes())
            }
            TemplatePart::Segment => after_some(&reached, bytes, |byte| !b"/?#".contains(&byte)),
            TemplatePart::Path => after_some(&reached, bytes, |_| true),
            TemplatePart::Rest => {
                let mut next = after_some(&reached, bytes, |_| true);
                next.iter_mut()
                    .zip(&reached)
                    .for_each(|(next, was)| *next |= was);
                next
            }
        };
    }
    (reached[bytes.len()] && literal > 0).then_some(literal)
}

fn pieces(template: &str) -> Option<Vec<TemplatePart<'_>>> {
    let mut pieces = Vec::new();
    let mut rest = template;
    while let Some((literal, behind)) = rest.split_once('{') {
        let (expression, behind) = behind.split_once('}')?;
        if !literal.is_empty() {
            pieces.push(TemplatePart::Literal(literal));
        }
        pieces.push(match expression.chars().next()? {
            '?' | '&' | ';' | '.' => TemplatePart::Rest,
            '+' | '#' | '/' => TemplatePart::Path,
            // Some authors mean the rest of a path by it.
            _ if expression.ends_with('*') => TemplatePart::Path,
            _ => TemplatePart::Segment,
        });
        rest = behind;
    }
    if !rest.is_empty() {
        pieces.push(TemplatePart::Literal(rest));
    }
    (pieces.len() <= 2 * EXPRESSIONS_MAX).then_some(pieces)
}

fn after_literal(reached: &[bool], bytes: &[u8], literal: &[u8]) -> Vec<bool> {
    let mut next = vec![false; reached.len()];
    for (at, _) in reached.iter().enumerate().filter(|(_, is)| **is) {
        if bytes[at..].starts_with(literal) {
            next[at + literal.len()] = true;
        }
    }
    next
}

fn after_some(reached: &[bool], bytes: &[u8], is_allowed: impl Fn(u8) -> bool) -> Vec<bool> {
    let mut next = vec![false; reached.len()];
    let mut is_open = false;
    for (at, byte) in bytes.iter().enumerate() {
        is_open = (is_open || reached[at]) && is_allowed(*byte);
        next[at + 1] = is_open;
    }
    next
}

#[cfg(test)]
mod tests {
    use super::fit;

    #[track_caller]
    fn check(template: &str, uri: &str, expected: Option<usize>) {
        assert_eq!(fit(template, uri), expected, "{template} {uri}");
    }

    #[test]
    fn a_template_fits_what_its_server_may_have_made_of_it() {
        check(
            "test://template/{id}/data",
            "test://template/123/data",
            Some(21),
        );
        check(
            "test://template/{id}/data",
            "test://template/1/2/data",
            None,
        );
        check("test://template/{id}/data", "test://template//data", None);
        check("file:///{+path}", "file:///a/b.txt", Some(8));
        check("file:///{path*}", "file:///a/b.txt", Some(8));
        check("repo://{owner}/{name}{?ref,depth}", "repo://a/b", Some(8));
        check("repo://{owner}/{name}{?ref}", "repo://a/b?ref=x/y", Some(8));
        check("a:{x}-{y}", "a:1-2-3", Some(3));
        check("a:b", "a:b", Some(3));
        check("a:b", "a:bc", None);
        check("{+all}", "a:b", None);
        check("a:{x", "a:b", None);
    }

    #[test]
    fn no_template_takes_long() {
        let hard = "a{x}".repeat(32) + "b";
        check(&hard, &"a".repeat(8_000), None);
        check(&"{x}".repeat(65), "a", None);
        check("a:{x}", &format!("a:{}", "x".repeat(9_000)), None);
    }
}
