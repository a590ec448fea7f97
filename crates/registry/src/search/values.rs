//! The kinds of the values in a request: `~/q3.xlsx` is a spreadsheet, `*/5 * * * *` a schedule.

/// Appends the kinds of the values to a request, for the encoder, which knows words only.
pub(super) fn with_kinds(text: &str) -> String {
    let kinds = kinds(text);
    if kinds.is_empty() {
        return text.to_owned();
    }
    format!("{text} ({})", kinds.join(", "))
}

fn kinds(text: &str) -> Vec<&'static str> {
    let pieces: Vec<&str> = text.split_whitespace().take(PIECES_MAX).collect();
    let mut kinds: Vec<&str> = Vec::new();
    let found = pieces.iter().filter_map(|piece| kind(piece));
    let of_several = [
        (is_sql(&pieces), "sql query"),
        (pieces.windows(CRON_FIELDS).any(is_cron), "cron schedule"),
        (
            pieces.iter().any(|it| is_sum(it)) || pieces.windows(3).any(is_spaced_sum),
            "calculate",
        ),
    ];
    let of_several = of_several.into_iter().filter(|(is_it, _)| *is_it);
    for kind in found.chain(of_several.map(|(_, kind)| kind)) {
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    kinds
}

/// The most pieces of a request that are examined; a pasted document begins with its subject.
const PIECES_MAX: usize = 200;

const CRON_FIELDS: usize = 5;

fn kind(piece: &str) -> Option<&'static str> {
    if let Some(kind) = kind_of_number(piece.trim_end_matches(|c: char| ".,;:?!)'".contains(c))) {
        return Some(kind);
    }
    let piece = piece.trim_matches(|c: char| ".,;?!()\"'`".contains(c));
    if piece.contains("://") {
        return Some("url web page");
    }
    let (name, ending) = piece.rsplit_once('.').unwrap_or((piece, ""));
    if name.contains('@') && !ending.is_empty() {
        return Some("email");
    }
    let ending = ending.to_ascii_lowercase();
    let by_ending = ENDINGS
        .iter()
        .find(|(endings, _)| endings.contains(&ending.as_str()));
    if let Some((_, kind)) = by_ending.filter(|_| !name.is_empty()) {
        return Some(kind);
    }
    let is_path = piece.len() > 1 && piece.starts_with(['/', '~']) || piece.starts_with("./");
    if is_path && piece.contains('/') {
        return Some("file path");
    }
    is_digest(piece).then_some("commit")
}

/// Names with a number that is part of them, and no key of an issue.
const STANDARDS: [&str; 10] = [
    "COVID", "GPT", "HTTP", "ISO", "MD", "MP", "RFC", "SHA", "TLS", "UTF",
];

/// The kind of a number by its sign: `#12`, `!77`, `PAY-312`, `10.0.0.0/8`, `1706.03762`.
fn kind_of_number(piece: &str) -> Option<&'static str> {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit());
    let has_sign = |sign: char| piece.strip_prefix(sign).is_some_and(is_number);
    let is_key = |(project, number): (&str, &str)| {
        let is_name = project.bytes().all(|it| it.is_ascii_uppercase());
        is_name
            && (2..=10).contains(&project.len())
            && !STANDARDS.contains(&project)
            && number.len() <= 6
            && is_number(number)
    };
    let is_network = |(address, bits): (&str, &str)| {
        is_number(bits) && address.parse::<std::net::IpAddr>().is_ok()
    };
    let is_paper = |(month, number): (&str, &str)| {
        month.len() == 4 && (4..=5).contains(&number.len()) && is_number(month) && is_number(number)
    };
    match piece {
        _ if has_sign('!') => Some("merge request"),
        _ if has_sign('#') || piece.split_once('-').is_some_and(is_key) => Some("issue"),
        _ if piece.split_once('/').is_some_and(is_network) => Some("network"),
        _ if piece.split_once('.').is_some_and(is_paper) => Some("arxiv paper"),
        _ => None,
    }
}

const ENDINGS: [(&[&str], &str); 8] = [
    (&["xlsx", "xls", "csv", "ods"], "spreadsheet"),
    (&["png", "jpg", "jpeg", "gif", "webp", "svg"], "image"),
    (&["pdf"], "pdf"),
    (&["docx", "doc", "odt"], "word document"),
    (&["pptx", "odp"], "presentation slides"),
    (&["mp4", "mov", "mkv", "webm"], "video"),
    (&["mp3", "wav", "flac", "ogg"], "audio"),
    (
        &[
            "txt", "md", "json", "yaml", "yml", "toml", "ini", "py", "rs", "js", "ts", "html",
            "css", "log", "xml", "sh", "go", "java", "c", "cpp", "h",
        ],
        "file",
    ),
];

/// Returns true for an abbreviated commit id: hexadecimal, letters and digits.
fn is_digest(piece: &str) -> bool {
    (7..=40).contains(&piece.len())
        && piece
            .bytes()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
        && piece.bytes().any(|byte| byte.is_ascii_digit())
        && piece.bytes().any(|byte| byte.is_ascii_lowercase())
}

fn is_sql(pieces: &[&str]) -> bool {
    let at = |word: &str| pieces.iter().position(|it| it.eq_ignore_ascii_case(word));
    let written = |word: &str| pieces.contains(&word);
    let selects = at("select").is_some_and(|select| at("from").is_some_and(|from| from > select));
    selects && (written("SELECT") || at("where").is_some() || written("*"))
}

fn is_cron(fields: &[&str]) -> bool {
    let is_field = |field: &&str| {
        let field = field.trim_matches(['"', '\'', '`']);
        !field.is_empty() && field.bytes().all(|byte| b"0123456789*/,-".contains(&byte))
    };
    fields.iter().all(is_field) && fields.iter().any(|field| field.contains('*'))
}

/// Matches `312.65/7`, `12*30`, `19%`, but no date or range.
fn is_sum(piece: &str) -> bool {
    let piece = piece.trim_matches(|c: char| "?=.,".contains(c));
    let is_part = |part: &str| part.parse::<f64>().is_ok();
    let halves = |sign: char| piece.split_once(sign);
    let is_of = |sign: char| halves(sign).is_some_and(|(a, b)| is_part(a) && is_part(b));
    ['*', '+', '^', '/', '\u{d7}', '\u{f7}']
        .into_iter()
        .any(is_of)
        || piece.strip_suffix('%').is_some_and(is_part)
}

/// Matches `12 * 30`.
fn is_spaced_sum(pieces: &[&str]) -> bool {
    let is_part = |part: &str| {
        part.trim_matches(['(', ')', '?', '='])
            .parse::<f64>()
            .is_ok()
    };
    let is_sign = |part: &str| ["+", "-", "*", "/", "\u{d7}", "\u{f7}", "^", "%"].contains(&part);
    matches!(pieces, [a, sign, b] if is_part(a) && is_sign(sign) && is_part(b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_named_as_what_they_are() {
        let check = |text: &str, expected: &[&str]| assert_eq!(kinds(text), expected, "{text}");
        check("open ~/money/q3.xlsx and add a row", &["spreadsheet"]);
        check(
            "what does https://example.org/a.pdf say?",
            &["url web page"],
        );
        check("write to ana@example.com", &["email"]);
        check("undo 9f3e2ab, please", &["commit"]);
        check("run it at */5 * * * *", &["cron schedule"]);
        check("SELECT name FROM guests WHERE age > 3", &["sql query"]);
        check("what is 312.65/7?", &["calculate"]);
        check("19% of 1284.50", &["calculate"]);
        check("12 * 30", &["calculate"]);
        check("read /etc/hosts and notes.md", &["file path", "file"]);
        check("merge !77, it fixes #12", &["merge request", "issue"]);
        check("PAY-312 blocks us", &["issue"]);
        check("ping all of 10.20.0.0/16", &["network"]);
        check("read arXiv 1706.03762.", &["arxiv paper"]);
        for text in [
            "",
            "Hello! 77 of them, #yes",
            "page-12 of UTF-8 and SHA-256",
            "it costs 1284.50 or 1234567.1234",
            "select a file from the list",
            "meet on 3/4/2026 or 2026-11-22",
            "lines 10-25",
            "facade decade",
            "e.g. this. And that.",
            "1234567",
            "/",
            "...",
        ] {
            check(text, &[]);
        }
    }
}
