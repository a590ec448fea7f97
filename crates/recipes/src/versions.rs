//! Version ranges, as far as recipes use them.

/// Returns true if a version is in a range such as `^20.19.0 || ^22.12.0 || >=23`, in npm's syntax.
/// Each alternative is a list of comparisons that all have to hold; without an operator, the version
/// must begin with the given numbers. Returns `None` for an invalid version or range.
pub fn fits(version: &str, range: &str) -> Option<bool> {
    let version = numbers(version.trim().trim_start_matches('v'))?;
    let version = [0, 1, 2].map(|at| version.get(at).copied().unwrap_or(0));
    let mut fits = false;
    for alternative in range.split("||") {
        fits |= holds(version, alternative)?;
    }
    Some(fits)
}

fn holds(version: [u64; 3], comparisons: &str) -> Option<bool> {
    let mut holds = true;
    // The operator of `>= 24`, until its version is read.
    let mut sign = "";
    for word in comparisons.split([' ', ',']).filter(|it| !it.is_empty()) {
        if sign.is_empty() && SIGNS.contains(&word) {
            sign = word;
            continue;
        }
        holds &= compare(version, &format!("{sign}{word}"))?;
        sign = "";
    }
    sign.is_empty().then_some(holds)
}

const SIGNS: [&str; 7] = [">=", ">", "<=", "<", "^", "~", "="];

fn compare(version: [u64; 3], comparison: &str) -> Option<bool> {
    let signs = comparison.find(|c: char| c.is_ascii_digit())?;
    let (sign, text) = comparison.split_at(signs);
    let said = numbers(text)?;
    let bound = [0, 1, 2].map(|at| said.get(at).copied().unwrap_or(0));
    let begins_alike = |numbers: usize| version[..numbers] == bound[..numbers];
    // `1.2` matches all of `1.2.x`.
    let begin = &version[..said.len()];
    Some(match sign {
        ">=" => version >= bound,
        ">" => begin > said.as_slice(),
        "<=" => begin <= said.as_slice(),
        "<" => version < bound,
        // The first number that is not 0 must be equal; if all are 0, all given numbers must be equal.
        "^" => {
            let stays = said.iter().position(|it| *it > 0).map(|at| at + 1);
            version >= bound && begins_alike(stays.unwrap_or(said.len()))
        }
        "~" => version >= bound && begins_alike(said.len().min(2)),
        "" | "=" | "v" => begins_alike(said.len()),
        _ => return None,
    })
}

/// Returns the numbers at the beginning, three at most; `x` and `*` end them.
fn numbers(text: &str) -> Option<Vec<u64>> {
    let end = text.find(['-', '+', 'x', '*']).unwrap_or(text.len());
    let parts = text[..end].trim_end_matches('.').split('.');
    parts.take(3).map(|part| part.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(version: &str, range: &str, expected: Option<bool>) {
        assert_eq!(fits(version, range), expected, "{version} in {range}");
    }

    #[test]
    fn a_version_is_in_a_range_or_not() {
        check("v20.20.2", ">=18", Some(true));
        check("20.20.2", ">=22.13.0", Some(false));
        check("20.20.2", "^20.19.0 || ^22.12.0 || >=23", Some(true));
        check("21.0.0", "^20.19.0 || ^22.12.0 || >= 23.0.0", Some(false));
        check("24.1.0", "^20.19.0 || ^22.12.0 || >= 23.0.0", Some(true));
        check("20.1.0", ">=20.x", Some(true));
        check("3.12.4", ">=3.11,<3.13", Some(true));
        check("3.13.0", ">=3.11,<3.13", Some(false));
        check("3.12.4", "3.12", Some(true));
        check("3.12.4", "~3.12.5", Some(false));
        check("22.0.0-nightly", ">=22", Some(true));
        check("20.1.0", "> 20", Some(false));
        check("21.0.0", "> 20 <= 21", Some(true));
        check("1.2.9", "<=1.2", Some(true));
        check("1.9.0", "~1", Some(true));
        check("2.0.0", "~1", Some(false));
        check("22.0.0", ">=", None);
        check("unknown", ">=22", None);
        check("22.0.0", "latest", None);
    }

    #[test]
    fn a_caret_keeps_the_first_number_that_is_not_zero() {
        for (version, range, fits) in [
            ("0.2.9", "^0.2.3", true),
            ("0.2.2", "^0.2.3", false),
            ("0.3.0", "^0.2.3", false),
            ("1.0.0", "^0.2.3", false),
            ("0.0.3", "^0.0.3", true),
            ("0.0.4", "^0.0.3", false),
            ("0.0.9", "^0.0", true),
            ("0.1.0", "^0.0", false),
            ("0.9.1", "^0", true),
            ("0.9.1", "^0.x", true),
            ("1.0.0", "^0.x", false),
            ("1.9.0", "^1.2", true),
            ("2.0.0", "^1.2", false),
        ] {
            check(version, range, Some(fits));
        }
    }
}
