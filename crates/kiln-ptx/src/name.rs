//! Names: short strings that many parts of a module share.

use std::sync::Arc;

/// A name in a module. Cloning one copies a pointer; the parser makes one per distinct spelling.
pub type Name = Arc<str>;
