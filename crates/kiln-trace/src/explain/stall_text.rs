//! Waits of streams in words.

use std::fmt::{self, Display, Formatter};

use super::explanation::StreamStall;
use super::quantity::Time;
use super::text::{Costs, shown_tag};
use crate::plain_text::Plain;
use crate::record::WaitReason;

impl Display for StreamStall {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", Costs(self.ns, self.times, self.longest_ns))?;
        let what = match (self.block, &*self.tag) {
            (None, _) => String::new(),
            (Some(block), "") => format!(" block {block}"),
            (Some(block), tag) => format!(" `{}` (block {block})", shown_tag(tag)),
        };
        let (waiter, writer) = (&self.waiter, &self.writer);
        match self.reason {
            WaitReason::ReadAfterWrite => write!(f, "{waiter} reads{what}, written by {writer}")?,
            WaitReason::WriteAfterWrite => write!(f, "{waiter} overwrites{what}, written by {writer}")?,
            WaitReason::WriteAfterRead => write!(f, "{waiter} overwrites{what}, read by {writer}")?,
            WaitReason::Allocation => write!(
                f,
                "{waiter} uses{what}, which was allocated on stream {} behind {writer}; allocate it on the stream that uses it first",
                writer.stream
            )?,
            WaitReason::Asked => {
                let line = self.line.as_ref().map(|line| format!(" at {}", Plain(line))).unwrap_or_default();
                write!(f, "{waiter} waited for {writer}, because the program asked for that{line}")?;
            }
            WaitReason::Unknown => write!(f, "{waiter} waited for {writer}")?,
        }
        match &self.unrelated {
            Some(unrelated) if self.unrelated_ns > 0 => {
                let time = Time(self.unrelated_ns);
                write!(f, "; {time} of the longest went to unrelated work, up to {unrelated}")
            }
            _ => Ok(()),
        }
    }
}
