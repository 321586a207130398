//! How the parameters of an emitted kernel lie in memory.

use crate::declaration::{BufferId, ScalarId};
use crate::program::Draft;
use crate::scalar_type::Type;

/// What a parameter of an emitted kernel is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EntryParameterKind {
    /// The address of a buffer, 64 bits.
    Pointer(BufferId),
    /// The number of elements of a buffer, 64 bits. A buffer that is declared like another, or with a count, must really
    /// have that many: the kernel relies on it.
    Length(BufferId),
    /// A scalar, as many bytes as its type has.
    Scalar(ScalarId),
    /// The address of a [`TrapStatus`] in global memory, 64 bits. There if the program can trap or meets at a grid barrier.
    Status,
    /// The address of 8 bytes in global memory that are zero when the launch starts and that no other launch uses. There
    /// if the program has a grid barrier.
    GridBarrier,
}

/// One parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct EntryParameter {
    /// What it is.
    pub kind: EntryParameterKind,
    /// Where it begins.
    pub offset: u64,
    /// Its size, which is also its alignment.
    pub bytes: u64,
}

/// The parameters of an emitted kernel: address and length of every buffer, then the scalars, then what is hidden.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ParameterLayout {
    /// In the order of the kernel.
    pub parameters: Vec<EntryParameter>,
    /// Bytes of all of them.
    pub bytes: u64,
}

impl ParameterLayout {
    pub(super) fn new(draft: &Draft, status: bool, grid_barrier: bool) -> Self {
        let buffers = (0..draft.buffers.len() as u32).flat_map(|id| {
            [(EntryParameterKind::Pointer(BufferId(id)), 8), (EntryParameterKind::Length(BufferId(id)), 8)]
        });
        let scalars = (0..).zip(&draft.scalars);
        let scalars =
            scalars.map(|(id, scalar)| (EntryParameterKind::Scalar(ScalarId(id)), scalar.ty.bytes()));
        let hidden = [(EntryParameterKind::Status, status), (EntryParameterKind::GridBarrier, grid_barrier)];
        let hidden = hidden.into_iter().filter(|(_, there)| *there).map(|(kind, _)| (kind, 8));
        let mut layout = Self { parameters: Vec::new(), bytes: 0 };
        for (kind, bytes) in buffers.chain(scalars).chain(hidden) {
            let offset = layout.bytes.next_multiple_of(bytes);
            layout.parameters.push(EntryParameter { kind, offset, bytes });
            layout.bytes = offset + bytes;
        }
        layout
    }

    /// The bytes of all parameters, from the bits of each.
    pub fn pack(&self, mut bits: impl FnMut(EntryParameterKind) -> u64) -> Vec<u8> {
        let mut packed = vec![0; self.bytes as usize];
        for parameter in &self.parameters {
            let (start, size) = (parameter.offset as usize, parameter.bytes as usize);
            let value = bits(parameter.kind).to_le_bytes();
            packed[start..start + size].copy_from_slice(&value[..size]);
        }
        packed
    }

    /// Whether there is a parameter of a kind.
    pub fn has(&self, kind: EntryParameterKind) -> bool {
        self.parameters.iter().any(|parameter| parameter.kind == kind)
    }
}

/// Bytes of a [`TrapStatus`] in global memory; zero when the launch starts.
pub const STATUS_BYTES: u64 = 24;

/// What a launch left in its status words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TrapStatus {
    /// Nothing trapped.
    Clean,
    /// A thread trapped, the first of all to say so.
    Trapped {
        /// What the program said.
        code: u32,
        /// The number of the thread in its block: along x, then y, then z.
        thread: u32,
        /// The number of the block in the grid: along x, then y, then z.
        block: u64,
    },
}

impl TrapStatus {
    /// Offset of the word that says whether a thread trapped: `u32`, 0 if not.
    pub(super) const STATE: u64 = 0;
    /// Offset of the code, `u32`.
    pub(super) const CODE: u64 = 4;
    /// Offset of the thread, `u32`.
    pub(super) const THREAD: u64 = 8;
    /// Offset of the block, `u64`.
    pub(super) const BLOCK: u64 = 16;

    /// Reads the words of a launch that has ended.
    pub fn read(bytes: &[u8; STATUS_BYTES as usize]) -> Self {
        let word = |at: u64, size: usize| {
            let mut word = [0; 8];
            word[..size].copy_from_slice(&bytes[at as usize..at as usize + size]);
            u64::from_le_bytes(word)
        };
        match word(Self::STATE, 4) {
            0 => Self::Clean,
            _ => Self::Trapped {
                code: word(Self::CODE, 4) as u32,
                thread: word(Self::THREAD, 4) as u32,
                block: word(Self::BLOCK, 8),
            },
        }
    }
}

/// The name of a parameter's type in PTX.
pub(super) fn parameter_type(bytes: u64) -> &'static str {
    match bytes {
        1 => "u8",
        2 => "u16",
        4 => "u32",
        _ => "u64",
    }
}

/// How an element of a type is loaded or stored: the name of the memory type in PTX.
pub(super) fn memory_type(ty: Type) -> &'static str {
    match ty {
        Type::Bool | Type::U8 => "u8",
        Type::U16 => "u16",
        Type::U32 => "u32",
        Type::U64 => "u64",
        Type::I8 => "s8",
        Type::I16 => "s16",
        Type::I32 => "s32",
        Type::I64 => "s64",
        Type::F16 | Type::Bf16 => "b16",
        Type::F32 => "f32",
        Type::F64 => "f64",
    }
}
