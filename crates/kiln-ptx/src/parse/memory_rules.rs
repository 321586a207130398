//! The state spaces, memory orders and cache words that loads, stores and atomics take.

use super::form_rules::any_of;
use crate::instruction_form::Form;
use crate::modifier::{Cache, Flag, Modifier, Operation, Order, Scope};
use crate::opcode::Opcode;
use crate::scalar::ScalarType;
use crate::state_space::Space;

/// Bytes of the vectors that take the eviction priorities of L2.
const WIDE_VECTOR_BYTES: u32 = 32;

/// What is wrong with the words of an instruction that accesses memory or speaks of a state space.
pub(super) fn broken_memory_words(form: &Form) -> Option<String> {
    // Copies and stores that complete later, and prefetches of tensor maps, have rules where they are executed.
    let is_other = [Flag::Async, Flag::Bulk, Flag::TensorMap].iter().any(|flag| form.has(*flag));
    if is_other {
        return None;
    }
    let spaces = spaces_taken(form.opcode())?;
    unknown_word(form)
        .or_else(|| broken_space(form, spaces))
        .or_else(|| broken_order(form))
        .or_else(|| broken_cache(form))
        .or_else(|| broken_operation(form))
        .or_else(|| broken_width(form))
}

/// A word that no access to memory has.
fn unknown_word(form: &Form) -> Option<String> {
    if !matches!(form.opcode(), Opcode::Ld | Opcode::St | Opcode::Ldu | Opcode::Atom | Opcode::Red) {
        return None;
    }
    let word = form.modifiers().iter().find(|word| matches!(word, Modifier::Other(_)))?;
    Some(format!("has `.{}`, which PTX does not have; leave it out", word.keyword()))
}

/// What is wrong with the number of values that are moved at once.
fn broken_width(form: &Form) -> Option<String> {
    let is_access = matches!(form.opcode(), Opcode::Ld | Opcode::St | Opcode::Ldu);
    let ty = form.ty().filter(|_| is_access && form.vector() > 1)?;
    let bytes = ty.size_bytes() * u32::from(form.vector());
    if ty == ScalarType::B128 || bytes > WIDE_VECTOR_BYTES {
        return Some(format!("moves more than {WIDE_VECTOR_BYTES} bytes at once; use several instructions"));
    }
    let space = form.space().filter(|space| *space != Space::Global && bytes == WIDE_VECTOR_BYTES)?;
    Some(format!(
        "moves {WIDE_VECTOR_BYTES} bytes at once, which `.global` alone takes, not `.{space}`; use two instructions"
    ))
}

/// The state spaces that an instruction takes besides generic addresses.
fn spaces_taken(opcode: Opcode) -> Option<&'static [Space]> {
    use Space::*;
    Some(match opcode {
        Opcode::Ld => &[Global, Shared, SharedCta, SharedCluster, Local, Param, ParamEntry, ParamFunc, Const],
        Opcode::St => &[Global, Shared, SharedCta, SharedCluster, Local, Param, ParamFunc],
        Opcode::Atom | Opcode::Red => &[Global, Shared, SharedCta, SharedCluster],
        Opcode::Ldu => &[Global],
        Opcode::Prefetch => &[Global, Local],
        Opcode::Isspacep | Opcode::Cvta => {
            &[Global, Shared, SharedCta, SharedCluster, Local, Param, ParamEntry, Const]
        }
        _ => return None,
    })
}

/// What is wrong with the state spaces.
fn broken_space(form: &Form, taken: &[Space]) -> Option<String> {
    let words = || any_of(taken.iter().map(|space| space.keyword()));
    let mut spaces = form.spaces();
    match (spaces.next(), spaces.next()) {
        (Some(_), Some(_)) => Some("names more than one state space; keep one".to_owned()),
        (Some(space), None) if !taken.contains(&space) => {
            Some(format!("names the state space `.{space}`; it takes {}", words()))
        }
        (None, _) if matches!(form.opcode(), Opcode::Isspacep | Opcode::Cvta) => {
            Some(format!("needs a state space: {}", words()))
        }
        _ => None,
    }
}

/// What is wrong with the memory order and its scope.
fn broken_order(form: &Form) -> Option<String> {
    use Order::*;
    let taken: &[Order] = match form.opcode() {
        Opcode::Ld => &[Weak, Relaxed, Acquire, Volatile, Mmio],
        Opcode::St => &[Weak, Relaxed, Release, Volatile, Mmio],
        Opcode::Atom => &[Relaxed, Acquire, Release, AcqRel],
        Opcode::Red => &[Relaxed, Release],
        Opcode::Ldu => &[],
        _ => return None,
    };
    let mut orders =
        form.modifiers().iter().filter_map(|m| if let Modifier::Order(x) = m { Some(*x) } else { None });
    if let Some(order) = orders.find(|order| !taken.contains(order)) {
        let words = any_of(taken.iter().map(|order| order.keyword()));
        let instead = if taken.is_empty() { "leave it out".to_owned() } else { format!("it takes {words}") };
        return Some(format!("has the memory order `.{order}`; {instead}"));
    }
    if !matches!(form.opcode(), Opcode::Ld | Opcode::St) {
        return None;
    }
    let order = form.order();
    let has_scope = form.scope().is_some();
    match order {
        Some(Relaxed | Acquire | Release) if !has_scope => {
            return Some("needs a scope such as `.gpu`".to_owned());
        }
        Some(Mmio) if form.scope() != Some(Scope::Sys) => {
            return Some("needs the scope `.sys`".to_owned());
        }
        Some(Mmio) if !form.has_word("relaxed") => return Some("needs `.relaxed` behind `.mmio`".to_owned()),
        None if has_scope => {
            let scope = form.scope()?;
            return Some(format!("has `.{scope}` and no memory order; write one, such as `.relaxed`"));
        }
        Some(Weak | Volatile) if has_scope => {
            return Some(format!("has a scope, which `.{}` does not take; leave it out", order?));
        }
        _ => {}
    }
    let space = form.space().map(Space::base);
    let is_private = matches!(space, Some(Space::Local | Space::Param | Space::Const));
    match order {
        Some(Mmio) if matches!(space, Some(Space::Shared | Space::SharedCluster)) => {
            Some("has `.mmio`, which is for `.global` alone".to_owned())
        }
        Some(Relaxed | Acquire | Release | Volatile | Mmio) if is_private => {
            Some(format!("has `.{}`, which the space `.{}` does not have; leave it out", order?, space?))
        }
        _ => None,
    }
}

/// What is wrong with the words about caches.
fn broken_cache(form: &Form) -> Option<String> {
    let mut own = form.modifiers().iter().filter(|word| matches!(word, Modifier::Cache(_)));
    match (form.opcode(), own.next()) {
        (Opcode::Ldu, Some(word)) => {
            return Some(format!("has `.{}`, which it does not take; leave it out", word.keyword()));
        }
        (Opcode::Prefetch, None) => return Some("needs a level: `.L1` or `.L2`".to_owned()),
        _ => {}
    }
    if !matches!(form.opcode(), Opcode::Ld | Opcode::St) {
        return None;
    }
    let words: Vec<Cache> = form
        .modifiers()
        .iter()
        .filter_map(|m| if let Modifier::Cache(cache) = m { Some(*cache) } else { None })
        .collect();
    if words.is_empty() {
        return None;
    }
    broken_cache_words(form, &words).or_else(|| broken_cache_place(form, &words))
}

/// Words about caches that the instruction does not take, or not together.
fn broken_cache_words(form: &Form, words: &[Cache]) -> Option<String> {
    let is_load = form.opcode() == Opcode::Ld;
    let taken = |word: &Cache| match kind(*word) {
        Kind::Operation if is_load => !matches!(word, Cache::Wb | Cache::Wt),
        Kind::Operation => matches!(word, Cache::Wb | Cache::Cg | Cache::Cs | Cache::Wt),
        Kind::ReadOnly | Kind::Prefetch => is_load,
        Kind::FirstLevel | Kind::SecondLevel | Kind::Policy => true,
        Kind::Level => false,
    };
    if let Some(word) = words.iter().find(|word| !taken(word)) {
        let instead =
            if is_load { "`.ca`, `.cg`, `.cs`, `.lu` or `.cv`" } else { "`.wb`, `.cg`, `.cs` or `.wt`" };
        return Some(format!("has `.{word}`, which it does not take; its cache words are {instead}"));
    }
    let several = [
        (Kind::Operation, "cache operations"),
        (Kind::ReadOnly, "words `.nc`"),
        (Kind::FirstLevel, "eviction priorities of L1"),
        (Kind::SecondLevel, "eviction priorities of L2"),
        (Kind::Prefetch, "prefetch sizes"),
    ];
    let count = |wanted: Kind| words.iter().filter(|word| kind(**word) == wanted).count();
    if let Some((_, what)) = several.into_iter().find(|(kind, _)| count(*kind) > 1) {
        return Some(format!("has several {what}; keep one"));
    }
    let has = |wanted: Kind| count(wanted) > 0;
    let operation = words.iter().find(|word| kind(**word) == Kind::Operation);
    if let (Some(operation), true) = (operation, has(Kind::FirstLevel)) {
        return Some(format!("has `.{operation}` and an eviction priority of L1; keep one of them"));
    }
    match operation {
        Some(Cache::Lu | Cache::Cv) if has(Kind::ReadOnly) => {
            Some("has `.nc`, which goes with `.ca`, `.cg` or `.cs` alone".to_owned())
        }
        _ => None,
    }
}

/// Words about caches that do not fit the space, the order or the width of the access.
fn broken_cache_place(form: &Form, words: &[Cache]) -> Option<String> {
    let has = |wanted: Kind| words.iter().any(|word| kind(*word) == wanted);
    let space = form.space();
    if has(Kind::ReadOnly) && space != Some(Space::Global) {
        return Some("has `.nc`, which is for `.global` alone; name that space".to_owned());
    }
    let is_elsewhere = space.is_some_and(|space| space != Space::Global);
    let of_levels = [Kind::FirstLevel, Kind::SecondLevel, Kind::Prefetch, Kind::Policy];
    if is_elsewhere && of_levels.into_iter().any(has) {
        return Some(format!("has words about L1 or L2, which are for `.global` alone, not `.{}`", space?));
    }
    let order = form.order();
    let is_ordered = order.is_some_and(|order| order != Order::Weak);
    if is_ordered && has(Kind::Operation) {
        return Some(format!("has a cache operation beside `.{}`; keep one of them", order?));
    }
    if order.is_some() && has(Kind::ReadOnly) {
        return Some(format!("has `.nc` beside `.{}`; keep one of them", order?));
    }
    if order == Some(Order::Volatile) && has(Kind::FirstLevel) {
        return Some("has an eviction priority beside `.volatile`; keep one of them".to_owned());
    }
    if order == Some(Order::Mmio) && of_levels.into_iter().any(has) {
        return Some("has words about L1 or L2 beside `.mmio`; leave them out".to_owned());
    }
    let bytes = form.ty().map_or(0, |ty| ty.size_bytes() * u32::from(form.vector()));
    if has(Kind::SecondLevel) && bytes < WIDE_VECTOR_BYTES {
        return Some("has an eviction priority of L2, which takes `.v8.b32` or `.v4.b64`".to_owned());
    }
    None
}

/// What is wrong with the operation of an atomic.
fn broken_operation(form: &Form) -> Option<String> {
    let is_reduction = form.opcode() == Opcode::Red;
    if !is_reduction && form.opcode() != Opcode::Atom {
        return None;
    }
    match form.operation() {
        None => Some("needs an operation such as `.add`".to_owned()),
        Some(operation @ (Operation::Exch | Operation::Cas)) if is_reduction => {
            Some(format!("has `.{operation}`, which gives a result; use `atom`"))
        }
        // Those of vectors have rules where they are executed.
        Some(_) if form.vector() > 1 => None,
        Some(_) => broken_subnormals(form),
    }
}

/// Whether an atomic says what becomes of subnormals where it must, and only there.
fn broken_subnormals(form: &Form) -> Option<String> {
    use ScalarType::{Bf16, Bf16x2, F16, F16x2};
    let is_half = matches!(form.ty()?, F16 | F16x2 | Bf16 | Bf16x2);
    match form.has(Flag::Noftz) {
        true if !is_half => Some("has `.noftz`, which is for halves alone; leave it out".to_owned()),
        false if is_half => Some("needs `.noftz`".to_owned()),
        _ => None,
    }
}

/// What a word about caches is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Operation,
    ReadOnly,
    FirstLevel,
    SecondLevel,
    Prefetch,
    Policy,
    /// The level that a prefetch fetches to.
    Level,
}

fn kind(word: Cache) -> Kind {
    use Cache::*;
    match word {
        Ca | Cg | Cs | Cv | Lu | Wb | Wt => Kind::Operation,
        Nc => Kind::ReadOnly,
        L1EvictNormal | L1EvictUnchanged | L1EvictFirst | L1EvictLast | L1NoAllocate => Kind::FirstLevel,
        L2EvictNormal | L2EvictFirst | L2EvictLast => Kind::SecondLevel,
        L264B | L2128B | L2256B => Kind::Prefetch,
        L2CacheHint => Kind::Policy,
        L1 | L2 => Kind::Level,
    }
}
