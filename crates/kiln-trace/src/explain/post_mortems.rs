//! What is known of the losses of devices.

use std::fmt::{self, Display, Formatter};

use crate::plain_text::Plain;
use crate::record::PostMortemRecord;

/// Post-mortems that are told.
const MAX_POST_MORTEMS: usize = 16;
/// Lines of each.
const MAX_LINES: usize = 100;

/// What is known of the loss of a device: the cause, what was under way, and what was kept or lost.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct ExplainedPostMortem {
    /// The device.
    pub device: u32,
    /// Which loss of the device it is about, from 0.
    pub generation: u32,
    /// When it was written.
    pub time_ns: u64,
    /// Its lines.
    pub lines: Vec<String>,
}

/// Post-mortems of a recording, the first few.
///
/// ```
/// use kiln_trace::{PostMortemRecord, PostMortems};
///
/// let mut found = PostMortems::default();
/// for line in ["worker lost: killed", "  under way nothing"] {
///     found.add(&PostMortemRecord { line, ..PostMortemRecord::default() });
/// }
/// assert_eq!(found.list()[0].lines, ["worker lost: killed", "  under way nothing"]);
/// ```
#[derive(Clone, Default, Debug)]
pub struct PostMortems {
    list: Vec<ExplainedPostMortem>,
}

impl PostMortems {
    /// Adds a line, if there is room for it.
    pub fn add(&mut self, line: &PostMortemRecord<'_>) {
        let is_its = |known: &&mut ExplainedPostMortem| {
            (known.device, known.generation) == (line.device, line.generation)
        };
        if let Some(known) = self.list.iter_mut().rfind(is_its) {
            if known.lines.len() < MAX_LINES {
                known.lines.push(line.line.to_owned());
            }
        } else if self.list.len() < MAX_POST_MORTEMS {
            let PostMortemRecord { device, generation, time_ns, .. } = *line;
            let lines = vec![line.line.to_owned()];
            self.list.push(ExplainedPostMortem { device, generation, time_ns, lines });
        }
    }

    /// Those that were added, in the order of the recording.
    pub fn list(&self) -> &[ExplainedPostMortem] {
        &self.list
    }

    pub(crate) fn finish(self) -> Vec<ExplainedPostMortem> {
        self.list
    }
}

impl Display for ExplainedPostMortem {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "Post-mortem of device {}:", self.device)?;
        self.lines.iter().try_for_each(|line| writeln!(f, "  {}", Plain(line)))
    }
}
