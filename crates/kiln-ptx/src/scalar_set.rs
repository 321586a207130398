//! A set of scalar types.

use crate::scalar::ScalarType;

/// A set of [`ScalarType`]s.
///
/// ```
/// use kiln_ptx::{ScalarSet, ScalarType};
///
/// let set: ScalarSet = [ScalarType::F32, ScalarType::B32].into_iter().collect();
/// assert!(set.contains(ScalarType::F32) && !set.contains(ScalarType::F64));
/// assert!(set.iter().all(|ty| ty.size_bytes() == 4));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ScalarSet(u64);

impl ScalarSet {
    /// Adds a type.
    pub fn insert(&mut self, ty: ScalarType) {
        self.0 |= 1 << ty as u32;
    }

    /// Whether a type is in it.
    pub fn contains(self, ty: ScalarType) -> bool {
        self.0 >> ty as u32 & 1 == 1
    }

    /// Whether it has no types.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Its types, in the order of their declaration.
    pub fn iter(self) -> impl Iterator<Item = ScalarType> {
        ScalarType::ALL.iter().copied().filter(move |ty| self.contains(*ty))
    }
}

impl FromIterator<ScalarType> for ScalarSet {
    fn from_iter<I: IntoIterator<Item = ScalarType>>(types: I) -> Self {
        let mut set = Self::default();
        types.into_iter().for_each(|ty| set.insert(ty));
        set
    }
}

/// Every type has a bit.
const _: () = assert!(ScalarType::ALL.len() <= u64::BITS as usize);
