//! Formats numbers for people.

/// Formats `61200` as `61,200`.
pub fn group_digits(number: usize) -> String {
    let digits = number.to_string();
    let mut grouped = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// Formats a number with its noun: `1 tool`, `1,200 tools`.
pub fn count_of(number: usize, thing: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {thing}{plural}", group_digits(number))
}

#[cfg(test)]
mod tests {
    use super::{count_of, group_digits};

    #[test]
    fn one_is_not_several() {
        let shown = [0, 1, 2, 1_200].map(|number| count_of(number, "tool"));
        assert_eq!(shown, ["0 tools", "1 tool", "2 tools", "1,200 tools"]);
    }

    #[test]
    fn numbers_are_grouped() {
        let shown: Vec<String> = [0, 999, 1_000, 61_200, 1_234_567].map(group_digits).into();
        assert_eq!(shown, ["0", "999", "1,000", "61,200", "1,234,567"]);
    }
}
