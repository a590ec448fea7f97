use proptest::prelude::*;
use regex::Regex;

use super::{
    count,
    ranks::{self, WORD_BYTES_MAX, rank},
    split::Class,
};
use crate::tokens::tokenizer;

#[test]
fn every_word_has_the_rank_that_it_has_in_the_encoding() {
    let mut place = 0_u32;
    while let Ok(word) = tokenizer().decode_bytes(&[place]) {
        assert_eq!(rank(&word), Some(place), "{word:?}");
        assert_eq!(ranks::word(place), word);
        assert!(word.len() <= WORD_BYTES_MAX);
        place += 1;
    }
    assert_eq!(place, 199_998);
    assert_eq!(rank(b"no word of it at all"), None);
}

#[test]
fn every_character_is_of_the_class_that_patterns_know() {
    let class = |pattern, class| (Regex::new(pattern).unwrap(), class);
    let classes = [
        class(r"[\p{Lu}\p{Lt}]", Class::Upper),
        class(r"\p{Ll}", Class::Lower),
        class(r"[\p{Lm}\p{Lo}]", Class::Letter),
        class(r"\p{M}", Class::Mark),
        class(r"\p{N}", Class::Number),
        class(r"\s", Class::Space),
        class(r"[^\p{L}\p{M}\p{N}\s]", Class::Sign),
    ];
    let all: String = ('\0'..=char::MAX).collect();
    let mut seen = 0;
    for (pattern, class) in classes {
        for found in pattern.find_iter(&all) {
            let c = found.as_str().chars().next().unwrap();
            assert_eq!(super::split::class(c), class, "U+{:x}", u32::from(c));
            seen += 1;
        }
    }
    assert_eq!(seen, all.chars().count());
}

#[track_caller]
fn check(text: &str) {
    assert_eq!(count(text), tokenizer().count_ordinary(text), "{text:?}");
}

#[test]
fn texts_cost_what_the_encoding_says() {
    check("");
    check(include_str!("split.rs"));
    check(include_str!("../../../../../docs/interface.md"));
    check("It'S we'LL 'tis x'ſ y'RE 12345 ½ Ⅷ");
    check("ǅungla \u{301}a a\u{301} A\u{301}B !\u{301} \u{301}\u{301}.");
    check("日本語 ΑΒΓαβγ हिन्दी العربية 👩\u{200d}👩 ÀÉdé DŽDz");
    check("  a\t\tb \r\n\r\n c  \u{a0}\u{3000}d   ");
    check(" //\n/ ./\r\n// \n/");
    check(&"x".repeat(3_000));
    check(&"aB9 ".repeat(700));
    check(&" ".repeat(400));
    check(&"=".repeat(500));
    check(&"abcdefghijklmnopqrstuvwxyz".repeat(40));
}

fn any_text() -> impl Strategy<Value = String> {
    let odd = proptest::sample::select(vec![
        "'s", "'LL", "'ſ", " ", "  ", "\n", "\r\n", "\t", "/", "\u{301}", "ǅ", "ʰ", "日", "Ab",
        "AB", "ab", "9", "½", "!", "--", "👍", "\u{a0}", "é", "Ж", "ж",
    ]);
    prop_oneof![
        "\\PC{0,200}",
        "[ -~\\n]{0,400}",
        "[a-zA-Z' ]{0,300}",
        "[0-9a-f]{90,300}",
        "[a-z]{90,300}",
        proptest::collection::vec(odd, 0..60).prop_map(|parts| parts.concat()),
        proptest::collection::vec(any::<char>(), 0..100).prop_map(String::from_iter),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn any_text_costs_what_the_encoding_says(text in any_text()) {
        prop_assert_eq!(count(&text), tokenizer().count_ordinary(&text));
    }
}
