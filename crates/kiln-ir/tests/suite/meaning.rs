//! What the documentation of the operations says holds: every sentence of it is in a table, with what shows it.
//!
//! A sentence that is added or changed in the sources is missing in the table, and one that is taken out is left over in it.

mod documentation;
mod run;
mod table;

use std::collections::BTreeSet;
use std::path::Path;

use crate::rig::{Launch, Left, interpret, simulate};
use documentation::documented;
use kiln_ir::{Literal, Program, PtxTarget, ThreadOrder, Type};
use run::{Case, check};
use table::{Shown, entries};

#[test]
fn every_sentence_of_the_documentation_is_in_the_table_and_no_other() {
    let said: BTreeSet<(String, String)> = documented()
        .into_iter()
        .flat_map(|one| one.sentences.into_iter().map(move |sentence| (one.name.clone(), sentence)))
        .collect();
    let shown: BTreeSet<(String, String)> =
        entries().iter().map(|entry| (entry.name.to_owned(), entry.sentence.to_owned())).collect();
    let only = |a: &BTreeSet<(String, String)>, b: &BTreeSet<(String, String)>| -> Vec<String> {
        a.difference(b).map(|(name, sentence)| format!("{name}: {sentence}")).collect()
    };
    assert!(said.len() > 150, "the sources were not understood: {said:?}");
    assert_eq!(only(&said, &shown), [""; 0], "sentences that nothing shows");
    assert_eq!(only(&shown, &said), [""; 0], "sentences that are not said any more");
}

#[test]
fn every_sentence_is_shown_and_holds() {
    let mut failures = Vec::new();
    for entry in entries() {
        let mut wrong = |what: String| failures.push(format!("{}: {}\n  {what}", entry.name, entry.sentence));
        if entry.shown.is_empty() {
            wrong("nothing shows it".to_owned());
        }
        for shown in &entry.shown {
            match shown {
                Shown::Run(line) => {
                    if let Err(what) = check(line) {
                        wrong(format!("{line}: {what}"));
                    }
                }
                Shown::Test { file, test } => {
                    if !has_test(file, test) {
                        wrong(format!("there is no test {file}::{test}"));
                    }
                }
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Whether a file of this folder or the one above has a test of a name.
fn has_test(file: &str, test: &str) -> bool {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let files = [folder.join(format!("suite/{file}.rs")), folder.join(format!("{file}.rs"))];
    let text = files.iter().find_map(|path| std::fs::read_to_string(path).ok()).unwrap_or_default();
    text.contains(&format!("#[test]\nfn {test}() {{"))
}

/// What one thread leaves in the only element.
fn value(ty: Type, body: &str) -> Literal {
    match Case::one(ty, body).left() {
        Ok(Left::Buffers(buffers)) => {
            let mut word = [0; 8];
            word[..buffers[0].len()].copy_from_slice(&buffers[0]);
            Literal::new(ty, u64::from_le_bytes(word))
        }
        other => panic!("{other:?}\n{body}"),
    }
}

#[test]
fn out_of_range_is_absorbed_whatever_the_type_of_the_index() {
    for index in ["1u8", "-1i8", "-1i16", "-1i32", "-1i64", "1u64", "18446744073709551615u64", "255u8"] {
        assert_eq!(
            value(Type::U32, &format!("y[{index}] = 5; y[0] = y[{index}] + 7u32;")),
            Literal::from(7u32)
        );
        let atomic = format!("y[0] = 3u32 + atomic_add(y[{index}], 5);");
        assert_eq!(value(Type::U32, &atomic), Literal::from(3u32));
    }
    let shared = |index: &str| {
        let text = format!(
            "kernel s(inout y: u32[1]) block(1) {{ shared t: u32[2]; t[{index}] = 9; y[0] = t[{index}] + t[0] + t[1] + 1u32; }}"
        );
        let program = Program::parse(&text).unwrap();
        let launch = Launch {
            grid: [1, 1, 1],
            dynamic_shared_bytes: 0,
            scalars: Vec::new(),
            buffers: vec![vec![0; 4]],
        };
        let (left, out_of_range) = interpret(&program, &launch, ThreadOrder::Ascending);
        assert_eq!(left, Left::Buffers(vec![vec![1, 0, 0, 0]]));
        assert_eq!(simulate(&program, &launch, PtxTarget::new(90).unwrap(), 0).unwrap(), left);
        assert_eq!(out_of_range, 2);
    };
    for index in ["2u8", "-1i8", "2i64", "-1i64", "4294967296u64", "18446744073709551614u64"] {
        shared(index);
    }
}

#[test]
fn a_count_ends_instead_of_wrapping_around() {
    let rounds = |head: &str| {
        value(Type::U32, &format!("var n: u32 = 0; for i in {head} {{ n = n + 1u32; }} y[0] = n;")).bits()
    };
    assert_eq!(rounds("250u8..255u8 step 2"), 3);
    assert_eq!(rounds("250u8..255u8 step 200"), 1);
    assert_eq!(rounds("126i8..127i8"), 1);
    assert_eq!(rounds("-128i8..127i8 step 100"), 3);
    assert_eq!(rounds("5u32..5u32"), 0);
    assert_eq!(rounds("6u32..5u32"), 0);
    assert_eq!(rounds("18446744073709551610u64..18446744073709551615u64 step 3"), 2);
    assert_eq!(rounds("9223372036854775800i64..9223372036854775807i64 step 5"), 2);
    assert_eq!(rounds("250u8..255u8 step u8(y[0] + 2u32)"), 3);
    assert_eq!(rounds("-128i8..127i8 step i8(y[0] + 100u32)"), 3);
    assert_eq!(rounds("9223372036854775800i64..9223372036854775807i64 step i64(y[0] + 5u32)"), 2);
    // End and step are taken once, before the first round.
    let text =
        "var by: u32 = 2; var n: u32 = 0; for i in 0u32..9u32 step by { by = 1; n = n + 1u32; } y[0] = n;";
    assert_eq!(value(Type::U32, text), Literal::from(5u32));
    let text = "var end: u32 = 3; var n: u32 = 0; for i in 0..end { end = 10; n = n + 1u32; } y[0] = n;";
    assert_eq!(value(Type::U32, text), Literal::from(3u32));
}

#[test]
fn a_value_is_what_it_was_when_it_was_computed() {
    let text = "var a: u32 = 1; let before = a; a = 2; y[0] = before * 10 + a;";
    assert_eq!(value(Type::U32, text), Literal::from(12u32));
    let text = "y[0] = 5; let before = y[0]; y[0] = 7; y[0] = before + y[0];";
    assert_eq!(value(Type::U32, text), Literal::from(12u32));
}
