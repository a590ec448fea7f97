//! The syntax of templates: `${...}` is a reference, `$$` is one `$`, and any other `$` is literal.

use std::ops::Range;

/// Finds every `${...}` of a template, which ends at the first `}`. Returns `None` if one is not closed.
pub fn find_references(template: &str) -> Option<Vec<Range<usize>>> {
    let (mut found, mut at) = (Vec::new(), 0);
    while let Some(dollar) = template[at..].find('$').map(|offset| at + offset) {
        at = dollar + 1;
        if template[at..].starts_with('$') {
            at += 1;
        } else if template[at..].starts_with('{') {
            at += template[at..].find('}')? + 1;
            found.push(dollar..at);
        }
    }
    Some(found)
}

/// Returns true if a template has a reference, closed or not.
pub fn has_reference(template: &str) -> bool {
    find_references(template).is_none_or(|found| !found.is_empty())
}

/// Returns the template of a literal text, also of one that a reference follows.
pub fn escape_template(text: &str) -> String {
    let mut template = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        template.push(c);
        if c == '$' && chars.peek().is_none_or(|next| "${".contains(*next)) {
            template.push('$');
        }
    }
    template
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn references_are_found() {
        let check = |template: &str, expected: Option<&[&str]>| {
            let found = find_references(template);
            let texts =
                found.map(|found| found.into_iter().map(|place| &template[place]).collect());
            assert_eq!(texts, expected.map(<[_]>::to_vec), "{template}");
        };
        check("a ${B} $c $$${D:-e}", Some(&["${B}", "${D:-e}"]));
        check("$${A} $$$${B} 5$", Some(&[]));
        check("${A:-${B}}", Some(&["${A:-${B}"]));
        check("$${A} ${B", None);
        assert!(has_reference("${A") && !has_reference("$${A}"));
    }

    #[test]
    fn only_a_dollar_that_would_be_read_is_escaped() {
        assert_eq!(
            escape_template("$HOME costs 5 $, ${HOME}"),
            "$HOME costs 5 $, $${HOME}"
        );
        assert_eq!(escape_template("a$$b$"), "a$$$b$$");
    }

    proptest! {
        #[test]
        fn an_escaped_text_is_a_template_of_that_text(text in "[$a{}é]{0,12}") {
            let template = escape_template(&text) + "${A}";
            let place = find_references(&template).unwrap().remove(0);
            prop_assert_eq!(&template[place.clone()], "${A}");
            prop_assert_eq!(template[..place.start].replace("$$", "$"), text);
        }
    }
}
