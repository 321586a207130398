//! The language reference in the book: its listings are programs, its `run:` lines hold, what it says is refused is, and every word is in it.

use kiln_ir::{
    AtomicOp, BinaryOp, BlockVote, CompareOp, MathFunction, MatrixLayout, MemoryOrder, MemoryScope, Program,
    PtxTarget, STEP_TRAP, ThreadOrder, Type, UnaryOp, WarpOp,
};

use crate::rig::run_line::{Run, run_lines};
use crate::rig::{interpret, simulate};

/// The reference as it is in the source tree.
fn reference() -> String {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/book/src/kir.md");
    std::fs::read_to_string(path).unwrap()
}

/// The listings with a mark, each with the line it begins at.
fn listings(text: &str, mark: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut open: Option<(usize, String)> = None;
    for (number, line) in (1..).zip(text.lines()) {
        match (&mut open, line.strip_prefix("```")) {
            (Some(_), Some("")) => found.extend(open.take().filter(|(start, _)| *start > 0)),
            // A listing of another kind is skipped up to its end.
            (None, Some(info)) => open = Some((if info == mark { number } else { 0 }, String::new())),
            (Some((_, listing)), _) => *listing += &format!("{line}\n"),
            (None, None) => {}
        }
    }
    assert!(open.is_none(), "a listing has no end");
    found
}

#[test]
fn every_listing_is_a_program_and_its_run_lines_hold() {
    let text = reference();
    let listings = listings(&text, "kir");
    let mut runs = 0;
    for (line, listing) in &listings {
        let program = Program::parse(listing).unwrap_or_else(|error| panic!("kir.md:{line}: {error}"));
        assert_eq!(Program::parse(&program.to_string()).as_ref(), Ok(&program), "kir.md:{line}");
        for run_line in run_lines(listing) {
            let run = Run::read(&program, run_line);
            let (left, out_of_range) = interpret(&program, &run.launch, ThreadOrder::Ascending);
            assert_eq!(run.check(&program, &left), None, "kir.md:{line}:{run_line}");
            assert!(
                run.out_of_range.is_none_or(|wanted| wanted == out_of_range),
                "kir.md:{line}: out_of_range {out_of_range}"
            );
            for target in [70, 90].map(|number| PtxTarget::new(number).unwrap()) {
                let left = simulate(&program, &run.launch, target, 1).unwrap();
                assert_eq!(run.check(&program, &left), None, "kir.md:{line}:{run_line} as {target}");
            }
            runs += 1;
        }
    }
    assert!(listings.len() >= 10 && runs >= 15, "{} listings with {runs} runs", listings.len());
}

#[test]
fn what_the_reference_says_is_refused_is_refused() {
    let text = reference();
    let refused = listings(&text, "kir,refused");
    for (line, listing) in &refused {
        let words = listing.lines().find_map(|line| line.strip_prefix("// refused: ")).unwrap();
        let error = Program::parse(listing).expect_err("this is to be refused").to_string();
        assert!(error.contains(words), "kir.md:{line}: {error}");
    }
    assert!(refused.len() >= 3, "{}", refused.len());
}

#[test]
fn every_word_of_the_language_is_in_the_reference() {
    let text = reference();
    let words: Vec<&str> = Type::ALL
        .iter()
        .map(|word| word.word())
        .chain(UnaryOp::ALL.iter().map(|word| word.word()))
        .chain(BinaryOp::ALL.iter().map(|word| word.word()))
        .chain(CompareOp::ALL.iter().map(|word| word.word()))
        .chain(MathFunction::ALL.iter().map(|word| word.word()))
        .chain(AtomicOp::ALL.iter().map(|word| word.word()))
        .chain(WarpOp::ALL.iter().map(|word| word.word()))
        .chain(BlockVote::ALL.iter().map(|word| word.word()))
        .chain(MemoryOrder::ALL.iter().map(|word| word.word()))
        .chain(MemoryScope::ALL.iter().map(|word| word.word()))
        .chain(MatrixLayout::ALL.iter().map(|word| word.word()))
        .chain(["tile", "tile_fill", "tile_load", "tile_store", "tile_multiply_add"])
        .collect();
    let is_said = |word: &str| {
        let is_letter = |c: char| c.is_ascii_alphanumeric() || c == '_';
        text.match_indices(word).any(|(at, _)| {
            let before = text[..at].chars().next_back().is_some_and(is_letter);
            let after = text[at + word.len()..].chars().next().is_some_and(is_letter);
            !word.starts_with(is_letter) || !before && !after
        })
    };
    let missing: Vec<&&str> = words.iter().filter(|word| !is_said(word)).collect();
    assert!(missing.is_empty(), "{missing:?}");
    assert!(text.contains(&STEP_TRAP.to_string()));
}
