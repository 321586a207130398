//! Forms: opcode and modifiers of an instruction, read once and shared.
//!
//! A module of a hundred thousand instructions has a few hundred distinct forms such as `ld.global.nc.f32`. Each
//! is taken apart once, and an instruction holds only its number; so an executor can also choose its handler once
//! per form instead of once per instruction.

use std::fmt;

use crate::modifier::{
    Compare, Flag, Modifier, Operation, Order, Part, Permute, Rounding, Scope, Shuffle, Test, Vote,
};
use crate::name::Name;
use crate::opcode::Opcode;
use crate::scalar::ScalarType;
use crate::state_space::Space;

/// The number of a form within its module.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FormId(pub u32);

impl FormId {
    /// The number as an index.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// An opcode with its modifiers in the order written.
///
/// ```
/// use kiln_ptx::{Cache, Form, Modifier, Opcode, ScalarType, Space};
///
/// let form = Form::read("ld.global.nc.v4.f32");
/// assert_eq!(form.opcode(), Opcode::Ld);
/// assert_eq!(form.space(), Some(Space::Global));
/// assert_eq!((form.vector(), form.ty()), (4, Some(ScalarType::F32)));
/// assert!(form.modifiers().contains(&Modifier::Cache(Cache::Nc)));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Form {
    text: Name,
    opcode: Opcode,
    modifiers: Vec<Modifier>,
}

impl Form {
    /// Takes a dotted word apart. Never fails: an unknown first word is [`Opcode::Unknown`], an unknown later one
    /// [`Modifier::Other`].
    pub fn read(text: &str) -> Self {
        let mut words = text.split('.');
        let opcode = words.next().and_then(Opcode::from_keyword).unwrap_or(Opcode::Unknown);
        let modifiers = words.map(|word| Modifier::read(opcode, word)).collect();
        Self { text: Name::from(text), opcode, modifiers }
    }

    /// The whole dotted word as written.
    pub fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn name(&self) -> Name {
        self.text.clone()
    }

    /// The operation; [`Opcode::Unknown`] when this crate has no name for it.
    pub fn opcode(&self) -> Opcode {
        self.opcode
    }

    /// All modifiers in the order written.
    pub fn modifiers(&self) -> &[Modifier] {
        &self.modifiers
    }

    /// All types in the order written: `cvt.rn.f32.s64` has two.
    pub fn types(&self) -> impl Iterator<Item = ScalarType> + '_ {
        self.modifiers.iter().filter_map(|m| match m {
            Modifier::Type(ty) => Some(*ty),
            _ => None,
        })
    }

    /// The first type.
    pub fn ty(&self) -> Option<ScalarType> {
        self.types().next()
    }

    /// The last type: the source type of `cvt`, the compared type of `set` and `setp`.
    pub fn source_type(&self) -> Option<ScalarType> {
        self.types().last()
    }

    /// All state spaces in the order written: `cp.async.ca.shared.global` has two.
    pub fn spaces(&self) -> impl Iterator<Item = Space> + '_ {
        self.modifiers.iter().filter_map(|m| match m {
            Modifier::Space(space) => Some(*space),
            _ => None,
        })
    }

    /// The first state space; `None` means generic addresses where the opcode has addresses.
    pub fn space(&self) -> Option<Space> {
        self.spaces().next()
    }

    /// Elements moved at once: 1 without `.v2`, `.v4` or `.v8`.
    pub fn vector(&self) -> u8 {
        self.find(|m| if let Modifier::Vector(n) = m { Some(*n) } else { None }).unwrap_or(1)
    }

    /// The first rounding.
    pub fn rounding(&self) -> Option<Rounding> {
        self.find(|m| if let Modifier::Rounding(x) = m { Some(*x) } else { None })
    }

    /// The comparison of `set` and `setp`.
    pub fn compare(&self) -> Option<Compare> {
        self.find(|m| if let Modifier::Compare(x) = m { Some(*x) } else { None })
    }

    /// The operation of an atomic, a reduction, a barrier reduction, or the combining one of `setp`.
    pub fn operation(&self) -> Option<Operation> {
        self.find(|m| if let Modifier::Operation(x) = m { Some(*x) } else { None })
    }

    /// `.lo`, `.hi` or `.wide`.
    pub fn part(&self) -> Option<Part> {
        self.find(|m| if let Modifier::Part(x) = m { Some(*x) } else { None })
    }

    /// The memory order.
    pub fn order(&self) -> Option<Order> {
        self.find(|m| if let Modifier::Order(x) = m { Some(*x) } else { None })
    }

    /// The memory scope.
    pub fn scope(&self) -> Option<Scope> {
        self.find(|m| if let Modifier::Scope(x) = m { Some(*x) } else { None })
    }

    /// The lane rule of `shfl`.
    pub fn shuffle(&self) -> Option<Shuffle> {
        self.find(|m| if let Modifier::Shuffle(x) = m { Some(*x) } else { None })
    }

    /// The question of `vote` or `match`.
    pub fn vote(&self) -> Option<Vote> {
        self.find(|m| if let Modifier::Vote(x) = m { Some(*x) } else { None })
    }

    /// The mode of `prmt`; `None` is the default one.
    pub fn permute(&self) -> Option<Permute> {
        self.find(|m| if let Modifier::Permute(x) = m { Some(*x) } else { None })
    }

    /// The question of `testp`.
    pub fn test(&self) -> Option<Test> {
        self.find(|m| if let Modifier::Test(x) = m { Some(*x) } else { None })
    }

    /// Whether `flag` is among the modifiers.
    pub fn has(&self, flag: Flag) -> bool {
        self.modifiers.iter().any(|m| matches!(m, Modifier::Flag(x) if *x == flag))
    }

    /// Whether a modifier is spelled `word`, for words that have no enum.
    pub fn has_word(&self, word: &str) -> bool {
        self.modifiers.iter().any(|m| m.keyword() == word)
    }

    fn find<T>(&self, pick: impl Fn(&Modifier) -> Option<T>) -> Option<T> {
        self.modifiers.iter().find_map(pick)
    }
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
