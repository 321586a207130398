//! Ranks in a sentence.

/// `rank 1`, `ranks 1, 2 and 5`.
pub(super) fn listed<'a>(ranks: impl Iterator<Item = &'a u32>) -> String {
    let ranks: Vec<String> = ranks.map(u32::to_string).collect();
    match ranks.as_slice() {
        [before @ .., last] if !before.is_empty() => format!("ranks {} and {last}", before.join(", ")),
        _ => format!("rank {}", ranks.concat()),
    }
}

/// What is said before and after the failure of a rank that had waited for these in vain; nothing if there are none.
pub(super) fn were_late(ranks: &[u32]) -> (String, String) {
    if ranks.is_empty() {
        return Default::default();
    }
    let (named, were) = (listed(ranks.iter()), if ranks.len() == 1 { "was" } else { "were" });
    (format!("{named} {were} late: "), format!(", because it waited for {named} in vain"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_listed_as_in_a_sentence() {
        assert_eq!(listed([3].iter()), "rank 3");
        assert_eq!(listed([0, 2, 5].iter()), "ranks 0, 2 and 5");
    }

    #[test]
    fn late_ranks_are_said_before_and_after() {
        assert_eq!(were_late(&[]), Default::default());
        let said = were_late(&[2, 4]);
        assert_eq!(said.0, "ranks 2 and 4 were late: ");
        assert_eq!(said.1, ", because it waited for ranks 2 and 4 in vain");
    }
}
