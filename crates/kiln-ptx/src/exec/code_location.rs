//! Where in the code, and in which thread, something happened.

use std::fmt;

use super::lowered_code::Code;
use crate::{PtxFunctionId, SourcePlace};

/// A thread at an instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodeSite {
    /// The kernel that was launched.
    pub kernel: String,
    /// The function the instruction belongs to; the kernel itself, or one it called.
    pub function: String,
    /// The instruction as PTX spells it, without operands.
    pub instruction: String,
    /// The line in the PTX text.
    pub ptx_line: u32,
    /// File and line of the source, where the module has debug lines.
    pub source: Option<(String, u32)>,
    /// Where the line was inlined, if the module says: of code from headers the innermost line of the file of the kernel.
    pub inlined_at: Option<(String, u32)>,
    /// The block, by its index in the grid.
    pub block: [u32; 3],
    /// The thread, by its index in the block.
    pub thread: [u32; 3],
}

impl CodeSite {
    /// The place of a step, without a thread.
    pub(crate) fn of(code: &Code, pc: u32) -> Self {
        let module = &code.module;
        let name =
            |id: u32| module.function(PtxFunctionId(id)).map_or_else(String::new, |f| f.name.to_string());
        let kernel = code.functions.first().map_or_else(String::new, |f| name(f.id));
        let mut site = Self {
            kernel,
            function: String::new(),
            instruction: String::new(),
            ptx_line: 0,
            source: None,
            inlined_at: None,
            block: [0; 3],
            thread: [0; 3],
        };
        let Some(origin) = code.origins.get(pc as usize) else { return site };
        site.function = name(origin.function);
        let Some(body) = module.function(PtxFunctionId(origin.function)).and_then(|f| f.body.as_ref()) else {
            return site;
        };
        let at = origin.instruction as usize;
        if let Some(instruction) = body.instructions().get(at) {
            site.ptx_line = instruction.origin.position().line;
            site.instruction =
                module.form(instruction.form).map_or_else(String::new, |f| f.text().to_owned());
        }
        let line = code.source_line(pc);
        let named = |place: &SourcePlace| {
            let path = module.source_path(place.file)?;
            Some((path.to_owned(), place.line))
        };
        site.source = line.and_then(|line| named(&line.place));
        site.inlined_at = body.inlined_at(at).and_then(|place| named(&place));
        site
    }

    /// The same place in a thread.
    pub(crate) fn in_thread(self, block: [u32; 3], thread: [u32; 3]) -> Self {
        Self { block, thread, ..self }
    }
}

/// `kernel.cu:12 inlined at kernel.cu:30 (PTX line 40)`, as much of it as is known.
pub(crate) struct Line<'a>(pub(crate) &'a CodeSite);

impl fmt::Display for Line<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0.source {
            Some((path, line)) => {
                write!(f, "{path}:{line}")?;
                if let Some((path, line)) = &self.0.inlined_at {
                    write!(f, " inlined at {path}:{line}")?;
                }
                write!(f, " (PTX line {})", self.0.ptx_line)
            }
            None => write!(f, "PTX line {}", self.0.ptx_line),
        }
    }
}

impl fmt::Display for CodeSite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.kernel)?;
        if self.function != self.kernel {
            write!(f, " in {}", self.function)?;
        }
        let ([bx, by, bz], [x, y, z]) = (self.block, self.thread);
        write!(f, " at {}, block ({bx},{by},{bz}) thread ({x},{y},{z})", Line(self))
    }
}
