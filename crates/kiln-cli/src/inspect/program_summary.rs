//! What is known of a program, as data.

use std::sync::Arc;

use kiln_ir::{EntryParameterKind, Extent, Program, PtxTarget, SourceLocation};
use kiln_ptx::{PointerAccess, PtxModule};
use serde::Serialize;

use crate::launch::role_word;

/// A program file.
#[derive(Serialize)]
pub(crate) struct ProgramSheet {
    pub(super) file: String,
    pub(super) program: String,
    /// In the order of arguments, before the scalars.
    pub(super) buffers: Vec<BufferSheet>,
    pub(super) scalars: Vec<ScalarSheet>,
    pub(super) shared: Vec<SharedSheet>,
    /// Bytes of all shared memory whose size is known.
    pub(super) shared_bytes: u64,
    /// The lines of its traps.
    pub(super) traps: Vec<u32>,
    pub(super) grid_barrier: bool,
    /// Threads of a block.
    pub(super) block: [u32; 3],
    /// The buffer that the grid covers.
    pub(super) over: Option<String>,
    /// Whether subnormal `f32` numbers are flushed to zero.
    pub(super) flush: bool,
    /// Whether every access checks its index.
    pub(super) checked: bool,
}

/// A buffer.
#[derive(Serialize)]
pub(super) struct BufferSheet {
    pub(super) index: usize,
    pub(super) name: String,
    pub(super) element: String,
    /// Its declaration: `in`, `out`, `inout`, ...
    pub(super) role: String,
    /// What the code does with it.
    pub(super) access: &'static str,
    /// The number of elements, if declared.
    pub(super) count: Option<u64>,
    /// The buffer that has as many elements.
    pub(super) like: Option<String>,
    pub(super) checked: bool,
}

/// A scalar.
#[derive(Serialize)]
pub(super) struct ScalarSheet {
    pub(super) index: usize,
    pub(super) name: String,
    #[serde(rename = "type")]
    pub(super) ty: String,
    pub(super) bytes: u64,
}

/// Shared memory.
#[derive(Serialize)]
pub(super) struct SharedSheet {
    pub(super) name: String,
    pub(super) element: String,
    /// None if the launch gives it.
    pub(super) count: Option<u64>,
    /// Whether it is zero when a block starts.
    pub(super) zeroed: bool,
}

impl ProgramSheet {
    pub(super) fn of(file: &str, program: &Program) -> Self {
        let accesses = accesses(program);
        let buffers = program.buffers.iter().enumerate().map(|(index, buffer)| BufferSheet {
            index,
            name: buffer.name.clone(),
            element: buffer.element.to_string(),
            role: buffer.role.to_string(),
            access: accesses
                .get(index)
                .copied()
                .flatten()
                .filter(|access| *access != PointerAccess::Unknown)
                .map_or_else(|| role_word(buffer.role), PointerAccess::word),
            count: match buffer.extent {
                Extent::Static(count) => Some(count),
                _ => None,
            },
            like: match buffer.extent {
                Extent::Like(id) => program.buffers.get(id.0 as usize).map(|other| other.name.clone()),
                _ => None,
            },
            checked: !buffer.unchecked,
        });
        let first = program.buffers.len();
        let scalars = program.scalars.iter().enumerate().map(|(at, scalar)| ScalarSheet {
            index: first + at,
            name: scalar.name.clone(),
            ty: scalar.ty.to_string(),
            bytes: scalar.ty.bytes(),
        });
        let shared = program.shared.iter().map(|shared| SharedSheet {
            name: shared.name.clone(),
            element: shared.element.to_string(),
            count: shared.count,
            zeroed: !shared.raw,
        });
        let over = program.over.and_then(|id| program.buffers.get(id.0 as usize));
        let traps = program.traps().into_iter().filter_map(|place| match place {
            SourceLocation::Text { line, .. } => Some(line),
            _ => None,
        });
        Self {
            file: file.to_owned(),
            program: program.name.clone(),
            buffers: buffers.collect(),
            scalars: scalars.collect(),
            shared: shared.collect(),
            shared_bytes: program.shared_bytes(),
            traps: traps.collect(),
            grid_barrier: program.meets_in_grid(),
            block: program.block,
            over: over.map(|buffer| buffer.name.clone()),
            flush: program.flush,
            checked: program.is_checked(),
        }
    }
}

/// What the code does with each buffer, according to its PTX.
fn accesses(program: &Program) -> Vec<Option<PointerAccess>> {
    let emitted = PtxTarget::all().last().map(|target| program.emit(target));
    let module = emitted.as_ref().and_then(|emitted| PtxModule::parse(&emitted.text).ok()).map(Arc::new);
    let facts = module.as_ref().and_then(|module| module.facts(module.find_function(&program.name)?));
    let (Some(emitted), Some(facts)) = (emitted, facts) else { return Vec::new() };
    let pairs = emitted.layout.parameters.iter().zip(&facts.signature.parameters);
    let pointers = pairs.filter(|(declared, _)| matches!(declared.kind, EntryParameterKind::Pointer(_)));
    pointers
        .map(|(_, parameter)| match parameter.pointers.first() {
            Some(field) => Some(field.effect.access()),
            // A parameter that the code does not use is not known to be a pointer.
            None => Some(PointerAccess::Neither),
        })
        .collect()
}
