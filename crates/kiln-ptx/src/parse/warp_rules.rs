//! The words of instructions that the threads of a warp execute together, and of fences.

use super::form_rules::Dialect;
use crate::instruction_form::Form;
use crate::modifier::{Flag, Modifier, Operation, Order, Vote};
use crate::opcode::Opcode;
use crate::scalar::ScalarType;

/// What is wrong with the words of a shuffle, a vote, a match, a reduction over a warp, or a fence.
pub(super) fn broken_warp_words(form: &Form, dialect: Dialect) -> Option<String> {
    let has_sync = form.has(Flag::Sync);
    match form.opcode() {
        // Architectures from sm_70 on run the lanes of a warp apart, and have these with a mask alone.
        Opcode::Shfl | Opcode::Vote if !has_sync && dialect.is_from(70) && dialect.is_since(6, 4) => Some(
            "needs `.sync` and a mask of the lanes that take part: architectures from sm_70 on have no other form"
                .to_owned(),
        ),
        Opcode::Match | Opcode::Redux if !has_sync => {
            Some("needs `.sync` and a mask of the lanes that take part".to_owned())
        }
        Opcode::Shfl | Opcode::Vote | Opcode::Match | Opcode::Redux if foreign_word(form).is_some() => {
            Some(format!("has `.{}`, which it does not take; leave it out", foreign_word(form)?))
        }
        Opcode::Shfl => broken_shuffle(form),
        Opcode::Vote => broken_vote(form),
        Opcode::Match if form.vote().is_none() => Some("needs `.any` or `.all`".to_owned()),
        Opcode::Redux => broken_reduction(form),
        Opcode::Fence => broken_fence(form),
        Opcode::Shf => broken_shift(form),
        Opcode::Dp2a if form.part().is_none() && !form.has_word("lo") && !form.has_word("hi") => {
            Some("needs `.lo` or `.hi`".to_owned())
        }
        Opcode::Dp2a | Opcode::Dp4a if form.types().count() != 2 => {
            Some("needs two types, such as `.u32.u32`".to_owned())
        }
        Opcode::Slct if form.has(Flag::Ftz) && form.source_type() != Some(ScalarType::F32) => {
            Some("has `.ftz`, which is for a choice by `.f32`; leave it out".to_owned())
        }
        Opcode::Exit | Opcode::Trap | Opcode::Brkpt if !form.modifiers().is_empty() => {
            Some("has words behind its name, which it does not take; leave them out".to_owned())
        }
        _ => None,
    }
}

/// A word that an instruction over a warp does not take.
fn foreign_word(form: &Form) -> Option<&str> {
    let is_own = |word: &Modifier| match word {
        Modifier::Type(_) | Modifier::Flag(Flag::Sync) => true,
        Modifier::Shuffle(_) => form.opcode() == Opcode::Shfl,
        Modifier::Vote(_) => matches!(form.opcode(), Opcode::Vote | Opcode::Match),
        Modifier::Operation(_) => form.opcode() == Opcode::Redux,
        Modifier::Flag(Flag::Abs | Flag::Nan) => {
            form.opcode() == Opcode::Redux && form.ty() == Some(ScalarType::F32)
        }
        // Words that stand for an operation or a mode elsewhere.
        _ => form.opcode() == Opcode::Redux && matches!(word.keyword(), "and" | "or" | "xor"),
    };
    form.modifiers().iter().find(|word| !is_own(word)).map(Modifier::keyword)
}

/// What is wrong with a fence of one order: those of proxies and objects have other words.
fn broken_fence(form: &Form) -> Option<String> {
    match form.modifiers() {
        [Modifier::Order(order)] => Some(format!("needs a scope, such as `.{order}.gpu`")),
        [Modifier::Order(Order::Relaxed), Modifier::Scope(_)] => {
            Some("has `.relaxed`, which orders nothing; use `.acq_rel` or `.sc`".to_owned())
        }
        _ => None,
    }
}

fn broken_shift(form: &Form) -> Option<String> {
    let has_side = form.has(Flag::Left) || form.has(Flag::Right);
    let has_end = form.has(Flag::Wrap) || form.has(Flag::Clamp);
    (!has_side || !has_end).then(|| "needs `.l` or `.r`, and `.wrap` or `.clamp`".to_owned())
}

fn broken_shuffle(form: &Form) -> Option<String> {
    let modes = form.modifiers().iter().filter(|word| matches!(word, Modifier::Shuffle(_)));
    match modes.count() {
        0 => Some("needs `.up`, `.down`, `.bfly` or `.idx`".to_owned()),
        1 => None,
        _ => Some("has several of `.up`, `.down`, `.bfly` and `.idx`; keep one".to_owned()),
    }
}

fn broken_vote(form: &Form) -> Option<String> {
    let wanted = match form.vote() {
        None => return Some("needs `.all`, `.any`, `.uni` or `.ballot`".to_owned()),
        Some(Vote::Ballot) => ScalarType::B32,
        Some(_) => ScalarType::Pred,
    };
    (form.ty() != Some(wanted)).then(|| format!("gives a value of the type `.{wanted}`; write that type"))
}

fn broken_reduction(form: &Form) -> Option<String> {
    use ScalarType::{B32, F32, S32, U32};
    let ty = form.ty()?;
    let taken: (&[ScalarType], &str) = match form.operation() {
        Some(Operation::And | Operation::Or | Operation::Xor) => (&[B32], "`.b32`"),
        Some(Operation::Add) => (&[U32, S32], "`.u32` or `.s32`"),
        Some(Operation::Min | Operation::Max) => (&[U32, S32, F32], "`.u32`, `.s32` or `.f32`"),
        _ => return Some("needs an operation such as `.add`".to_owned()),
    };
    let (types, words) = taken;
    (!types.contains(&ty)).then(|| format!("has the type `.{ty}`; this operation takes {words}"))
}
