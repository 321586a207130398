//! Ranks in a sentence.

/// `1, 3 and 5`; a long list is cut.
pub(crate) fn listed(ranks: &[u32]) -> String {
    const SHOWN: usize = 16;
    let shown: Vec<String> = ranks.iter().take(SHOWN).map(u32::to_string).collect();
    match (ranks.len() > SHOWN, shown.as_slice()) {
        (true, _) => format!("{} and {} more", shown.join(", "), ranks.len() - SHOWN),
        (false, [before @ .., last]) if !before.is_empty() => format!("{} and {last}", before.join(", ")),
        _ => shown.concat(),
    }
}

/// `rank 1`, `ranks 1 and 3`.
pub(crate) fn named(ranks: &[u32]) -> String {
    let plural = if ranks.len() == 1 { "" } else { "s" };
    format!("rank{plural} {}", listed(ranks))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_named_and_many_are_counted() {
        assert_eq!((listed(&[3]), named(&[3])), ("3".into(), "rank 3".into()));
        assert_eq!(listed(&[1, 3, 5]), "1, 3 and 5");
        assert_eq!(named(&[1, 3]), "ranks 1 and 3");
        let many: Vec<u32> = (0..20).collect();
        assert!(listed(&many).ends_with("15 and 4 more"));
    }
}
