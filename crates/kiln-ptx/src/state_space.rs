//! State spaces: the memories of PTX.

use crate::keyword::keywords;

keywords! {
    /// A state space as written in an instruction or a declaration.
    ///
    /// An instruction without one uses generic addresses.
    pub enum Space {
        Const = "const", Global = "global", Local = "local",
        Param = "param", ParamEntry = "param::entry", ParamFunc = "param::func",
        Shared = "shared", SharedCta = "shared::cta", SharedCluster = "shared::cluster",
        Tex = "tex",
    }
}

impl Space {
    /// The space without the part behind `::`; the shared memory of another block stays distinct.
    pub fn base(self) -> Self {
        match self {
            Self::ParamEntry | Self::ParamFunc => Self::Param,
            Self::SharedCta => Self::Shared,
            other => other,
        }
    }
}
