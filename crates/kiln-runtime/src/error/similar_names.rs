//! Finds the known names most similar to an unknown one, for error messages.

/// Names that are offered, at the most.
const OFFERED: usize = 3;

/// The names that are nearest to one that does not exist, the nearest first.
pub(crate) fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut ranked: Vec<(usize, &str)> = known.map(|known| (distance(name, known), known)).collect();
    ranked.sort_unstable();
    ranked.dedup();
    ranked.into_iter().take(OFFERED).map(|(_, known)| known.to_owned()).collect()
}

/// Characters to insert, remove or replace to make one text the other.
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (at, letter) in one.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], at + 1);
        for (column, theirs) in other.iter().enumerate() {
            let replaced = diagonal + usize::from(letter != *theirs);
            diagonal = row[column + 1];
            row[column + 1] = replaced.min(row[column] + 1).min(diagonal + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_names_come_first_and_each_once() {
        let known = ["factors", "offset", "factor", "count", "factor"];
        assert_eq!(nearest("facter", known.into_iter()), ["factor", "factors", "offset"]);
        assert!(nearest("x", std::iter::empty()).is_empty());
    }

    #[test]
    fn distances_are_those_of_levenshtein() {
        for (one, other, expected) in
            [("kitten", "sitting", 3), ("", "abc", 3), ("abc", "", 3), ("same", "same", 0), ("ä", "a", 1)]
        {
            assert_eq!((distance(one, other), distance(other, one)), (expected, expected), "{one} {other}");
        }
    }
}
