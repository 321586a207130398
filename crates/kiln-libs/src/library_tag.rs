//! The tag that memory of libraries is counted under.

use std::sync::OnceLock;

use kiln_mem::AllocTag;

const NAME: &str = "library";

/// The tag of workspace and of other memory that a library call allocates.
pub(crate) fn library_tag() -> AllocTag {
    static TAG: OnceLock<AllocTag> = OnceLock::new();
    *TAG.get_or_init(|| AllocTag::new(NAME).unwrap_or_default())
}
