//! What the heap did, in words.

use std::fmt::{self, Display, Formatter};

use super::explanation::ExplainedHeapChange;
use super::quantity::Bytes;
use crate::plain_text::Plain;

impl Display for ExplainedHeapChange {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let times = if self.times == 1 { "once".to_owned() } else { format!("{} times", self.times) };
        write!(f, "{} {times}, {}", self.change.words(), Bytes(self.bytes))?;
        match &*self.tag {
            "" => Ok(()),
            tag => write!(f, ", most for `{}` ({})", Plain(tag), Bytes(self.tag_bytes)),
        }
    }
}
