//! Where the shared variables of an entry lie.
//!
//! On hardware they lie one behind the other, and an index past the end of one reaches the next. Here a gap lies between them that no access may
//! touch. What a kernel can ask for (the size of its shared memory) and what is compared with limits does not count the gaps.

use std::collections::HashMap;

use crate::exec::memory::SharedMap;
use crate::{PtxModule, SpecialName, VariableId};

/// Dynamic shared memory starts at a multiple of this.
const DYNAMIC_ALIGN: u64 = 16;
/// A gap is as large as the variable before it, within these limits: rows of a tile are overrun by a row.
const MIN_GAP_BYTES: u64 = 64;
const MAX_GAP_BYTES: u64 = 1024;

/// Bytes that are reserved for the system in each block, as since sm_80.
const RESERVED_BYTES: u64 = 1024;
/// Where in them what libraries may use begins: `%reserved_smem_offset_1`.
const RESERVED_FOR_LIBRARIES: u64 = 512;

/// The places of the shared variables, by their numbers in the module.
pub(super) struct SharedLayout {
    offsets: HashMap<u32, u64>,
    pub(super) map: SharedMap,
    /// Bytes of all variables of known size, up to where dynamic shared memory starts on hardware.
    pub(super) bytes: u64,
    /// The same without what is left free before dynamic shared memory.
    pub(super) static_bytes: u64,
    /// Where the memory that is reserved for the system lies, if the code uses it.
    reserved: Option<u64>,
}

impl SharedLayout {
    /// A layout of these variables, and of the memory that is reserved for the system if the code uses it.
    pub(super) fn new(module: &PtxModule, used: &[VariableId], uses_reserved: bool) -> Self {
        let mut layout = Self {
            offsets: HashMap::new(),
            map: SharedMap::default(),
            bytes: 0,
            static_bytes: 0,
            reserved: None,
        };
        let variable = |id: &VariableId| module.variable(*id);
        let (open, sized): (Vec<_>, Vec<_>) =
            used.iter().partition(|id| variable(id).is_some_and(|v| v.shape.is_open()));
        let mut gap = 0;
        for id in &sized {
            let Some(variable) = variable(id) else { continue };
            let (align, bytes) =
                (u64::from(variable.shape.align_bytes().max(1)), variable.shape.size_bytes());
            layout.bytes = aligned(layout.bytes, align).saturating_add(bytes);
            let start = aligned(layout.map.end().saturating_add(gap), align);
            layout.offsets.insert(id.0, start);
            layout.map.add(&variable.name, start, bytes);
            gap = bytes.clamp(MIN_GAP_BYTES, MAX_GAP_BYTES);
        }
        layout.static_bytes = layout.bytes;
        if uses_reserved {
            // It does not count, and lies behind the variables here: they have the addresses that they have without it.
            let start = aligned(layout.map.end().saturating_add(gap), DYNAMIC_ALIGN);
            layout.map.add("reserved", start, RESERVED_BYTES);
            layout.reserved = Some(start);
            gap = MAX_GAP_BYTES;
        }
        let align = open.iter().filter_map(variable).map(|v| u64::from(v.shape.align_bytes())).max();
        if let Some(align) = align.map(|align| align.max(DYNAMIC_ALIGN)) {
            layout.bytes = aligned(layout.bytes, align);
            layout.map.start_dynamic(aligned(layout.map.end().saturating_add(gap), align));
        }
        layout.offsets.extend(open.iter().map(|id| (id.0, layout.map.dynamic())));
        layout
    }

    /// What a special register tells about the memory that is reserved for the system.
    pub(super) fn reserved(&self, name: SpecialName) -> Option<u64> {
        let start = self.reserved?;
        Some(match name {
            SpecialName::ReservedSmemOffsetBegin | SpecialName::ReservedSmemOffset0 => start,
            SpecialName::ReservedSmemOffsetEnd => start + RESERVED_BYTES,
            SpecialName::ReservedSmemOffsetCap => RESERVED_BYTES,
            SpecialName::ReservedSmemOffset1 => start + RESERVED_FOR_LIBRARIES,
            _ => return None,
        })
    }

    pub(super) fn offset(&self, id: VariableId) -> Option<u64> {
        self.offsets.get(&id.0).copied()
    }
}

/// The next multiple; sizes beyond all numbers stay where they are and are refused later.
fn aligned(bytes: u64, align: u64) -> u64 {
    bytes.checked_next_multiple_of(align).unwrap_or(u64::MAX)
}
