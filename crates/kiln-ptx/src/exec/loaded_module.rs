//! A module ready to run.

use std::sync::{Arc, OnceLock};

use super::code_location::{CodeSite, Line};
use super::entry::Entry;
use super::lower::lower;
use super::lowered_code::{Code, Op, Why};
use super::refusal::describe_step;
use super::variables::{ModuleVariable, Variables};
use crate::{PtxFunctionId, PtxModule};

/// A module whose entries can be launched.
///
/// Cloning one is cheap. Entries are lowered when they are first launched.
///
/// ```
/// use kiln_ptx::PtxModule;
/// use kiln_ptx::exec::{LaunchShape, Options, ExecProgram, SimpleMemory};
///
/// let text = "
///     .version 8.0
///     .target sm_80
///     .address_size 64
///     .visible .entry twice(.param .u64 data) {
///         .reg .b32 %r<3>;
///         .reg .b64 %rd<3>;
///         ld.param.u64 %rd0, [data];
///         mov.u32 %r0, %tid.x;
///         mul.wide.u32 %rd1, %r0, 4;
///         add.s64 %rd2, %rd0, %rd1;
///         ld.global.u32 %r1, [%rd2];
///         add.u32 %r2, %r1, %r1;
///         st.global.u32 [%rd2], %r2;
///         ret;
///     }";
/// let program = ExecProgram::new(PtxModule::parse(text)?);
/// let mut memory = SimpleMemory::new();
/// let data = memory.allocate_with(&[1, 0, 0, 0, 7, 0, 0, 0]);
/// let entry = program.entry("twice").unwrap();
/// let shape = LaunchShape::linear(1, 2);
/// let outcome = entry.launch(&shape, &data.to_le_bytes(), &[], &memory, &Options::default())?;
/// assert!(outcome.is_clean());
/// assert_eq!(memory.read(data, 8).unwrap(), [2, 0, 0, 0, 14, 0, 0, 0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct ExecProgram {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) module: Arc<PtxModule>,
    pub(crate) variables: Variables,
    pub(crate) entries: Vec<EntrySlot>,
}

/// An entry and its code, once it is needed.
pub(crate) struct EntrySlot {
    pub(crate) function: PtxFunctionId,
    code: OnceLock<Code>,
}

/// An instruction the executor does not run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnsupportedInstruction {
    /// What it is, in words.
    pub what: String,
    /// Where it stands; block and thread mean nothing here.
    pub site: CodeSite,
    /// What to do next.
    pub remedy: &'static str,
}

impl std::fmt::Display for UnsupportedInstruction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} in {} at {}", self.what, self.site.function, Line(&self.site))
    }
}

impl ExecProgram {
    /// Takes a module over.
    pub fn new(module: impl Into<Arc<PtxModule>>) -> Self {
        let module = module.into();
        let variables = Variables::new(&module);
        let entries = (0..)
            .zip(module.functions())
            .filter(|(_, function)| function.is_entry() && function.body.is_some())
            .map(|(at, _)| EntrySlot { function: PtxFunctionId(at), code: OnceLock::new() })
            .collect();
        Self { inner: Arc::new(Inner { module, variables, entries }) }
    }

    /// The module it was made of.
    pub fn module(&self) -> &PtxModule {
        &self.inner.module
    }

    /// The entries, in the order of the module.
    pub fn entries(&self) -> impl Iterator<Item = Entry> + '_ {
        (0..self.inner.entries.len()).map(|at| Entry::new(&self.inner, at))
    }

    /// An entry by name.
    pub fn entry(&self, name: &str) -> Option<Entry> {
        let id = self.inner.module.find_function(name)?;
        let at = self.inner.entries.binary_search_by_key(&id, |slot| slot.function).ok()?;
        Some(Entry::new(&self.inner, at))
    }

    /// The variables in global memory. The loader of the program finds room for each, writes its
    /// [`contents`](Self::contents) there, and gives their addresses to every launch in this order.
    pub fn variables(&self) -> &[ModuleVariable] {
        &self.inner.variables.list
    }

    /// What a variable holds at first when all of them lie at `addresses`; what this does not reach is zero.
    pub fn contents(&self, variable: usize, addresses: &[u64]) -> Vec<u8> {
        self.inner.variables.contents(&self.inner.module, variable, addresses)
    }
}

impl Inner {
    pub(crate) fn code(&self, at: usize) -> &Code {
        let slot = &self.entries[at];
        slot.code.get_or_init(|| lower(&self.module, &self.variables, slot.function))
    }
}

/// The instructions of lowered code that are not run.
pub(crate) fn unsupported(code: &Code) -> Vec<UnsupportedInstruction> {
    let steps = (0..).zip(&code.steps);
    let found = steps.filter_map(|(pc, step)| match step.op {
        Op::Unsupported(why) => {
            let site = CodeSite::of(code, pc);
            let remedy = match why {
                Why::Requires(_) => {
                    "raise `.version` or `.target`; for CUDA C, compile it for that architecture and give the PTX"
                }
                _ => "run the kernel on a GPU",
            };
            Some(UnsupportedInstruction { what: describe_step(&site, why, &code.module), site, remedy })
        }
        _ => None,
    });
    found.collect()
}

impl std::fmt::Debug for ExecProgram {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<String> = self.entries().map(|entry| entry.name().to_owned()).collect();
        f.debug_struct("Program").field("entries", &names).finish_non_exhaustive()
    }
}
