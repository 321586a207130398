//! One operation as text, from the texts of its operands.

use crate::operation::{Op, UnaryOp};
use crate::program::Draft;

/// A piece of an expression.
#[derive(Clone, Debug)]
pub(super) struct Piece {
    pub(super) text: String,
    /// How strongly its outermost operator binds; [`TIGHT`] if it has none.
    binding: u8,
    /// How deep it is nested.
    pub(super) depth: usize,
}

/// Binds as strongly as a name.
const TIGHT: u8 = 10;
/// Binds as strongly as a prefix.
const PREFIX: u8 = 9;

impl Piece {
    /// A name or a literal.
    pub(super) fn plain(text: String) -> Self {
        Self { text, binding: TIGHT, depth: 0 }
    }

    /// In parentheses if it binds less strongly than its surroundings.
    fn within(&self, binding: u8) -> String {
        if self.binding < binding { format!("({})", self.text) } else { self.text.clone() }
    }
}

/// How strongly an operator binds.
fn binding(word: &str) -> u8 {
    match word {
        "|" => 2,
        "^" => 3,
        "&" => 4,
        "<<" | ">>" => 5,
        "+" | "-" => 6,
        "*" | "/" | "%" => 7,
        // Comparisons.
        _ => 1,
    }
}

/// An operation whose operands are these pieces.
pub(super) fn operation(draft: &Draft, op: &Op, operands: &[Piece]) -> Piece {
    let depth = operands.iter().map(|piece| piece.depth + 1).max().unwrap_or(0);
    let list = || operands.iter().map(|piece| &*piece.text).collect::<Vec<_>>().join(", ");
    let call = |name: &str| (format!("{name}({})", list()), TIGHT);
    let infix = |word: &str| match operands {
        [a, b] => {
            let strength = binding(word);
            (
                format!("{} {word} {}", a.within(strength + u8::from(strength == 1)), b.within(strength + 1)),
                strength,
            )
        }
        _ => call(word),
    };
    let (text, binding) = match op {
        // A minus before digits would be read as a part of the number.
        Op::Unary { op: UnaryOp::Neg, .. } if !list().starts_with(|c: char| c.is_ascii_digit()) => {
            (format!("-{}", operands.first().map_or(String::new(), |a| a.within(PREFIX))), PREFIX)
        }
        Op::Unary { op: UnaryOp::Not, .. } => {
            (format!("!{}", operands.first().map_or(String::new(), |a| a.within(PREFIX))), PREFIX)
        }
        Op::Unary { op, .. } => call(op.word()),
        Op::Function { function, .. } => call(function.word()),
        Op::Binary { op, .. } if op.is_infix() => infix(op.word()),
        Op::Binary { op, .. } => call(op.word()),
        Op::Compare { op, .. } => infix(op.word()),
        Op::Select { .. } => call("select"),
        Op::Fma { .. } => call("fma"),
        Op::Convert { to, .. } => call(to.word()),
        Op::Bitcast { to, .. } => call(&format!("{to}.from_bits")),
        Op::Builtin(builtin) => (builtin.to_string(), TIGHT),
        Op::Parameter(id) => (draft.scalars.get(id.index()).map_or(String::new(), |s| s.name.clone()), TIGHT),
        Op::Read(id) => (super::print_statement::variable_name(draft, *id), TIGHT),
        Op::Load { memory, .. } => (format!("{}[{}]", draft.memory_name(*memory), list()), TIGHT),
        Op::Length(memory) => (format!("len({})", draft.memory_name(*memory)), TIGHT),
        Op::Atomic { op, memory, order, scope, .. } => {
            let mut texts = operands.iter().map(|piece| &*piece.text);
            let index = texts.next().unwrap_or("");
            let rest = texts.collect::<Vec<_>>().join(", ");
            (format!("{op}.{order}.{scope}({}[{index}], {rest})", draft.memory_name(*memory)), TIGHT)
        }
        Op::Warp { op, .. } => call(op.word()),
        Op::BlockVote { vote, .. } => call(vote.word()),
    };
    Piece { text, binding, depth }
}
