//! Reserved words.

use crate::operation::{AtomicOp, BinaryOp, BlockVote, Builtin, MathFunction, TileOp, UnaryOp, WarpOp};
use crate::scalar_type::Type;

const KEYWORDS: [&str; 33] = [
    "kernel",
    "in",
    "out",
    "inout",
    "persistent",
    "shared",
    "raw",
    "unchecked",
    "like",
    "block",
    "over",
    "flush",
    "let",
    "var",
    "if",
    "else",
    "for",
    "while",
    "break",
    "continue",
    "return",
    "barrier",
    "grid",
    "fence",
    "trap",
    "true",
    "false",
    "select",
    "fma",
    "len",
    "step",
    "device",
    "system",
];

/// Whether a word is part of the grammar and no operand.
pub(super) fn is_keyword(word: &str) -> bool {
    KEYWORDS.contains(&word)
}

/// Whether a word can be a name: it is an identifier and not reserved.
pub(crate) fn is_name(word: &str) -> bool {
    let mut letters = word.chars();
    let first = letters.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
    first && letters.all(|c| c.is_ascii_alphanumeric() || c == '_') && !is_reserved(word)
}

fn is_reserved(word: &str) -> bool {
    let axis = Some("x").filter(|_| !matches!(word, "lane" | "warp"));
    // The last two cannot be the name of an entry in PTX.
    KEYWORDS.contains(&word)
        || matches!(word, "_" | "WARP_SZ")
        || Type::from_word(word).is_some()
        || UnaryOp::from_word(word).is_some()
        || BinaryOp::from_word(word).is_some()
        || MathFunction::from_word(word).is_some()
        || AtomicOp::from_word(word).is_some()
        || WarpOp::from_word(word).is_some()
        || BlockVote::from_word(word).is_some()
        || TileOp::WORDS.contains(&word)
        || Builtin::from_words(word, axis).is_some()
}
