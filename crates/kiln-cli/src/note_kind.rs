//! The kinds of notes: what is allowed and may still be a mistake. `--strict` takes them for findings.

use std::fmt::Write;

/// A kind of note.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum NoteKind {
    Order,
    SameValue,
    Barrier,
    Mask,
    Leak,
    Index,
}

impl NoteKind {
    /// All of them, in the order of the documentation.
    pub(crate) const ALL: [Self; 6] =
        [Self::Order, Self::SameValue, Self::Barrier, Self::Mask, Self::Leak, Self::Index];

    /// The word for it: the kind of the finding that it is under `--strict`.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Order => "order",
            Self::SameValue => "same-value",
            Self::Barrier => "barrier",
            Self::Mask => "mask",
            Self::Leak => "leak",
            Self::Index => "index",
        }
    }

    /// What is noted.
    pub(crate) const fn meaning(self) -> &'static str {
        match self {
            Self::Order => "results that depend on the order of threads",
            Self::SameValue => "threads that write the same value",
            Self::Barrier => {
                "threads that exit before a barrier, barriers that are left incomplete or reached at different places"
            }
            Self::Mask => {
                "masks that name lanes which have exited, shuffles with a width that is no power of two"
            }
            Self::Leak => "memory of malloc that is not freed",
            Self::Index => "indices out of range in a program",
        }
    }

    /// The help of `--strict`.
    pub(crate) fn strict_help() -> String {
        let mut help = "Report what is otherwise a note as a finding".to_owned();
        for (at, kind) in Self::ALL.into_iter().enumerate() {
            let _ = write!(help, "{} {} ({})", if at == 0 { ":" } else { ";" }, kind.meaning(), kind.word());
        }
        help
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documentation_lists_every_kind_with_its_word() {
        let page = include_str!("../../../docs/checking.md");
        let notes =
            page.split("## Notes").nth(1).and_then(|rest| rest.split("\n## ").next()).unwrap_or_default();
        for kind in NoteKind::ALL {
            assert!(notes.contains(&format!("(`{}`)", kind.word())), "{kind:?} is not in docs/checking.md");
            assert!(NoteKind::strict_help().contains(kind.meaning()));
        }
        let listed = notes.matches("(`").count();
        assert_eq!(listed, NoteKind::ALL.len(), "docs/checking.md lists a kind that does not exist");
    }
}
