//! What is known about a value: where it comes from and what it may point at.

use super::origin::Origins;
use crate::variable::VariableId;

/// An address inside a known variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Place {
    pub(super) variable: VariableId,
    /// Bytes from its start, when known.
    pub(super) offset: Option<i64>,
}

/// The most places one value lists; beyond, it may be any place.
const MAX_PLACES: usize = 4;

/// The variables a value may be an address of.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Places {
    Few(Vec<Place>),
    Any,
}

impl Places {
    pub(super) const NONE: Self = Self::Few(Vec::new());

    fn join(&mut self, other: &Self) {
        let (Self::Few(mine), Self::Few(theirs)) = (&mut *self, other) else {
            if *self != *other && *other == Self::Any {
                *self = Self::Any;
            }
            return;
        };
        for place in theirs {
            // A place at an unknown offset covers all others of its variable.
            let covers =
                |p: &Place| p.variable == place.variable && (p.offset.is_none() || p.offset == place.offset);
            if !mine.iter().any(covers) {
                mine.retain(|p| p.variable != place.variable || place.offset.is_some());
                mine.push(*place);
            }
        }
        if mine.len() > MAX_PLACES {
            mine.iter_mut().for_each(|place| place.offset = None);
        }
        mine.sort_unstable();
        mine.dedup();
        if mine.len() > MAX_PLACES {
            *self = Self::Any;
        }
    }

    fn moved(&self, by: Option<i64>) -> Self {
        let Self::Few(places) = self else { return Self::Any };
        let mut places = places.clone();
        for place in &mut places {
            place.offset = place.offset.and_then(|offset| offset.checked_add(by?));
        }
        places.sort_unstable();
        places.dedup();
        Self::Few(places)
    }
}

/// What the analysis knows about a register or a piece of memory.
///
/// Every field only ever moves one way while the analysis runs: sets grow, `definite` and `upper` fall. That is what makes it
/// end, and what makes its result independent of the order of steps.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Value {
    /// Whether any assignment has been seen yet.
    pub(super) defined: bool,
    /// Whether it is a pointer for certain, into one of `base`: then whatever is added to it is an offset.
    pub(super) definite: bool,
    /// Everything it was computed from.
    pub(super) all: Origins,
    /// What it may point into.
    pub(super) base: Origins,
    /// The variables meant by `LOCAL` and `PARAMETER` in `base`.
    pub(super) places: Places,
    /// The number itself, when it is known.
    pub(super) constant: Option<i64>,
    /// Whether the low 32 bits are zero for certain, as after a shift by 32: moved down again, it is a narrow number.
    pub(super) upper: bool,
}

impl Value {
    /// Not assigned yet.
    pub(super) const UNSEEN: Self = Self {
        defined: false,
        definite: true,
        all: Origins::NONE,
        base: Origins::NONE,
        places: Places::NONE,
        constant: None,
        upper: true,
    };

    /// A number that has nothing to do with pointers.
    pub(super) fn plain() -> Self {
        Self { defined: true, definite: false, upper: false, ..Self::UNSEEN }
    }

    pub(super) fn constant(number: i64) -> Self {
        Self { constant: Some(number), ..Self::plain() }
    }

    /// A value that may be a pointer into any of `origins`.
    pub(super) fn pointer(origins: Origins) -> Self {
        let places =
            if origins.meets(Origins::LOCAL | Origins::PARAMETER) { Places::Any } else { Places::NONE };
        Self { all: origins, base: origins, places, ..Self::plain() }
    }

    /// The address of a variable, which is a pointer for certain.
    pub(super) fn address(origin: Origins, variable: VariableId, offset: i64) -> Self {
        let place = Place { variable, offset: Some(offset) };
        Self { definite: true, places: Places::Few(vec![place]), ..Self::pointer(origin) }
    }

    /// Data of `width` bytes out of memory we know nothing about.
    pub(super) fn data(width: u32) -> Self {
        if width >= 8 {
            Self::pointer(Origins::UNKNOWN)
        } else {
            Self { all: Origins::FRAGMENT, ..Self::plain() }
        }
    }

    /// Includes `other`; true when that changed anything.
    pub(super) fn join(&mut self, other: &Self) -> bool {
        if !other.defined {
            return false;
        }
        if !self.defined {
            *self = other.clone();
            return true;
        }
        // Between a pointer and a number it does not show any more which of the two is the number.
        match (self.base.is_empty(), other.base.is_empty()) {
            (true, false) => {
                *self = std::mem::replace(self, Self::UNSEEN).into_address();
                self.include(other);
                // It points somewhere now.
                true
            }
            (false, true) => self.include(&other.clone().into_address()),
            _ => self.include(other),
        }
    }

    fn include(&mut self, other: &Self) -> bool {
        let before = (self.definite, self.all, self.base, self.constant, self.upper);
        self.definite &= other.definite;
        self.upper &= other.upper;
        self.all |= other.all;
        self.base |= other.base;
        if self.constant != other.constant {
            self.constant = None;
        }
        let mut changed = before != (self.definite, self.all, self.base, self.constant, self.upper);
        if self.places != other.places {
            let old = self.places.clone();
            self.places.join(&other.places);
            changed |= old != self.places;
        }
        changed
    }

    /// A number as the address it may be: of whatever it was computed from, since a pointer that was shifted away and back points where it
    /// did.
    fn into_address(self) -> Self {
        let address = Self::pointer(self.all.assembled());
        Self { base: address.base, places: address.places, ..self }
    }

    /// The same value, now known to be a pointer.
    pub(super) fn certainly_pointer(&self) -> Self {
        Self { definite: true, ..self.clone() }
    }

    /// A part too narrow to be a pointer; a pointer can be put together from such parts again.
    pub(super) fn piece(&self) -> Self {
        Self { all: self.all, ..Self::plain() }
    }

    /// The value shifted by 32 bits or more: it has nothing below, and a pointer may be put together with it.
    pub(super) fn raised(&self) -> Self {
        Self { upper: true, ..Self::plain().assembled(self) }
    }

    /// The value shifted down so far that what was raised before is a narrow number again.
    pub(super) fn lowered(&self) -> Self {
        if self.upper { self.piece() } else { self.mixed(&Self::plain(), true) }
    }

    /// Whether its low 32 bits are zero, as far as that is known.
    fn is_upper(&self) -> bool {
        self.upper || self.constant.is_some_and(|number| number & 0xffff_ffff == 0)
    }

    /// A product, quotient or scaled index: it depends on its operands but points nowhere.
    pub(super) fn product(&self, other: &Self) -> Self {
        Self { all: (self.all | other.all).without(Origins::MANGLED), ..Self::plain() }
    }

    /// A pointer put together from parts.
    pub(super) fn assembled(&self, other: &Self) -> Self {
        Self::pointer((self.all | other.all).assembled())
    }

    /// The result of an operation that is not followed: where an operand may have pointed, the result may. A `wide` result
    /// may even undo what was done to a pointer before.
    pub(super) fn mixed(&self, other: &Self, wide: bool) -> Self {
        let all = self.all | other.all;
        let base = self.base | other.base;
        if base.is_empty() && (!wide || all.pointed().is_empty()) {
            return Self { all, ..Self::plain() };
        }
        Self { all: all | Origins::MANGLED, ..Self::pointer(base | all.assembled()) }
    }

    /// `self + other`, or `self - other`. `pointers` are the origins known to be pointers.
    ///
    /// The sum of a pointer and a number points where the pointer does. The operands do not say which is which, so
    /// one counts as the number only if it can be told:
    ///
    /// - it points nowhere, or the other is a pointer for certain and it is not;
    /// - and it must not depend on a pointer, nor may it be a pointer taken away, since `b + (a - b)` is `a`.
    pub(super) fn sum(&self, other: &Self, subtract: bool, pointers: Origins) -> Self {
        if let (Some(a), Some(b)) = (self.constant, other.constant) {
            return Self::constant(if subtract { a.wrapping_sub(b) } else { a.wrapping_add(b) });
        }
        let all = self.all | other.all;
        let is_index = |v: &Self, to: &Self| !subtract && to.definite && !v.definite;
        let is_offset = |v: &Self, to: &Self| {
            !v.all.meets(pointers | Origins::MANGLED) && (v.base.is_empty() || is_index(v, to))
        };
        let upper = self.is_upper() && other.is_upper();
        let step = |v: &Self| v.constant.map(|n| if subtract { n.wrapping_neg() } else { n });
        if is_offset(other, self) {
            return Self {
                all,
                places: self.places.moved(step(other)),
                constant: None,
                upper,
                ..self.clone()
            };
        }
        if !subtract && is_offset(self, other) {
            return Self {
                all,
                places: other.places.moved(step(self)),
                constant: None,
                upper,
                ..other.clone()
            };
        }
        let mangled = if subtract { Origins::MANGLED } else { Origins::NONE };
        // An origin that one operand had dropped as a mere offset may be what is left after the other cancels.
        Self { all: all | mangled, upper, ..Self::pointer(self.base | other.base | all.pointed()) }
    }
}
