//! Counts with their nouns: `1 byte`, `2 bytes`.

/// `1 byte`, `2 bytes`.
pub(crate) fn counted(count: u64, noun: &str) -> String {
    match count {
        1 => format!("1 {noun}"),
        count => format!("{count} {noun}s"),
    }
}

/// `was` for one, `were` for more.
pub(crate) fn was(count: u64) -> &'static str {
    if count == 1 { "was" } else { "were" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_singular() {
        assert_eq!([0, 1, 2].map(|count| counted(count, "byte")), ["0 bytes", "1 byte", "2 bytes"]);
        assert_eq!([0, 1, 2].map(was), ["were", "was", "were"]);
    }
}
