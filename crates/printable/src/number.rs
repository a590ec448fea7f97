//! Numbers as people read them.

/// `61200` as `61,200`.
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

#[cfg(test)]
mod tests {
    use super::group_digits;

    #[test]
    fn numbers_are_grouped() {
        let shown: Vec<String> = [0, 999, 1_000, 61_200, 1_234_567].map(group_digits).into();
        assert_eq!(shown, ["0", "999", "1,000", "61,200", "1,234,567"]);
    }
}
