//! Linkage of functions and variables.

use crate::keyword::keywords;

keywords! {
    /// Who may see a symbol. Without one it belongs to its module alone.
    pub enum Linkage { Extern = "extern", Visible = "visible", Weak = "weak", Common = "common" }
}
