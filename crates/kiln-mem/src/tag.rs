//! `AllocTag`: a small number that says what an allocation is for.

use std::collections::HashMap;
use std::fmt;
use std::sync::{OnceLock, PoisonError, RwLock};

/// A name for what memory is used for, interned: comparing and storing it costs a `u16`.
///
/// ```
/// use kiln_mem::AllocTag;
///
/// let weights = AllocTag::new("weights")?;
/// assert_eq!(weights, AllocTag::new("weights")?);
/// assert_eq!(weights.name(), "weights");
/// assert_eq!(AllocTag::default().name(), "untagged");
/// assert_eq!(AllocTag::new("")?, AllocTag::default());
/// # Ok::<(), kiln_mem::TooManyTags>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct AllocTag(u16);

/// The process has used up all 65,536 tags; use fewer names, and none that are made up at run time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "no more than {} tags; use names that are written in the program, not made up at run time",
    AllocTag::LIMIT
)]
pub struct TooManyTags;

/// Names by number, and numbers by name.
struct Names {
    by_number: Vec<&'static str>,
    by_name: HashMap<&'static str, u16>,
}

impl AllocTag {
    /// How many tags a process can have.
    pub const LIMIT: usize = 1 << 16;

    /// The tag of a name, the same for the life of the process. An empty name is that of memory without a tag, [`default`](Self::default).
    ///
    /// # Errors
    /// When the process has [`LIMIT`](Self::LIMIT) tags already and this would be a new one.
    pub fn new(name: &str) -> Result<Self, TooManyTags> {
        if name.is_empty() {
            return Ok(Self::default());
        }
        let known = names().read().unwrap_or_else(PoisonError::into_inner).by_name.get(name).copied();
        if let Some(number) = known {
            return Ok(Self(number));
        }
        let mut names = names().write().unwrap_or_else(PoisonError::into_inner);
        if let Some(number) = names.by_name.get(name) {
            return Ok(Self(*number));
        }
        let number = u16::try_from(names.by_number.len()).map_err(|_| TooManyTags)?;
        let name: &'static str = Box::leak(name.into());
        names.by_number.push(name);
        names.by_name.insert(name, number);
        Ok(Self(number))
    }

    /// The name.
    pub fn name(self) -> &'static str {
        let names = names().read().unwrap_or_else(PoisonError::into_inner);
        names.by_number.get(usize::from(self.0)).copied().unwrap_or("untagged")
    }

    /// The number, small and dense.
    #[inline]
    pub fn number(self) -> usize {
        usize::from(self.0)
    }

    /// The tag with this number, if it was given out.
    pub fn from_number(number: usize) -> Option<Self> {
        let given = names().read().unwrap_or_else(PoisonError::into_inner).by_number.len();
        u16::try_from(number).ok().filter(|number| usize::from(*number) < given).map(Self)
    }
}

impl fmt::Display for AllocTag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Debug for AllocTag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.name())
    }
}

fn names() -> &'static RwLock<Names> {
    static NAMES: OnceLock<RwLock<Names>> = OnceLock::new();
    NAMES.get_or_init(|| {
        RwLock::new(Names { by_number: vec!["untagged"], by_name: HashMap::from([("untagged", 0)]) })
    })
}
