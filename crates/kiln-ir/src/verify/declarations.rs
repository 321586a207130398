//! Names and sizes of what a draft declares.

use std::collections::HashSet;

use super::error::{VerifyError, VerifyReason};
use crate::declaration::{BufferId, Extent};
use crate::operation::{FRAGMENT_COLUMNS, FRAGMENT_ROWS};
use crate::program::Draft;
use crate::scalar_type::Type;
use crate::source_location::SourceLocation;
use crate::text::is_name;

/// Threads a block has at most, and in each dimension.
const MAX_THREADS: u64 = 1024;
const MAX_THREADS_OF: [u32; 3] = [1024, 1024, 64];
/// Shared memory a kernel can declare.
const MAX_SHARED_BYTES: u64 = 48 << 10;
/// Bytes of a tile: 128 registers of 32 bits in each lane.
const MAX_TILE_BYTES: u64 = 128 * 4 * 32;
/// Bytes an address can reach.
const MAX_BUFFER_BYTES: u64 = 1 << 47;

pub(super) fn check(draft: &Draft) -> Result<(), VerifyError> {
    names(draft)
        .and_then(|()| block(draft))
        .and_then(|()| buffers(draft))
        .and_then(|()| shared(draft))
        .and_then(|()| tiles(draft))
        .map_err(|reason| VerifyError::new(SourceLocation::Unknown, reason))
}

fn names(draft: &Draft) -> Result<(), VerifyReason> {
    let buffers = draft.buffers.iter().map(|buffer| &buffer.name);
    let scalars = draft.scalars.iter().map(|scalar| &scalar.name);
    let shared = draft.shared.iter().map(|shared| &shared.name);
    let tiles = draft.tiles.iter().map(|tile| &tile.name);
    let mut taken = HashSet::new();
    for name in buffers.chain(scalars).chain(shared).chain(tiles) {
        if !is_name(name) {
            return Err(VerifyReason::Name { name: name.clone() });
        }
        if !taken.insert(name) {
            return Err(VerifyReason::Duplicate { name: name.clone() });
        }
    }
    if is_name(&draft.name) { Ok(()) } else { Err(VerifyReason::Name { name: draft.name.clone() }) }
}

fn block(draft: &Draft) -> Result<(), VerifyReason> {
    let size =
        |what: &str, size: u64, rule: String| Err(VerifyReason::Size { what: what.to_owned(), size, rule });
    for ((axis, count), most) in ["x", "y", "z"].iter().zip(draft.block).zip(MAX_THREADS_OF) {
        if count == 0 || count > most {
            return size(&format!("the block along {axis}"), count.into(), format!("can be 1 to {most}"));
        }
    }
    let threads = draft.block.iter().map(|count| u64::from(*count)).product();
    if threads > MAX_THREADS {
        return size("the number of threads of a block", threads, format!("can be at most {MAX_THREADS}"));
    }
    Ok(())
}

fn buffers(draft: &Draft) -> Result<(), VerifyReason> {
    let exists = |id: BufferId| id.index() < draft.buffers.len();
    if draft.over.is_some_and(|id| !exists(id)) {
        return Err(VerifyReason::Declaration {
            what: "the grid covers a buffer that does not exist".to_owned(),
        });
    }
    for buffer in &draft.buffers {
        let name = &buffer.name;
        match buffer.extent {
            Extent::Static(count)
                if count.checked_mul(buffer.element.bytes()).is_none_or(|b| b > MAX_BUFFER_BYTES) =>
            {
                let what = format!("the count of `{name}`");
                return Err(VerifyReason::Size {
                    what,
                    size: count,
                    rule: "must fit in an address".to_owned(),
                });
            }
            Extent::Like(id) => {
                let other = draft.buffers.get(id.index());
                if other.is_none_or(|other| matches!(other.extent, Extent::Like(_))) {
                    let what = format!("`{name}` must be like a buffer that has its own size");
                    return Err(VerifyReason::Declaration { what });
                }
            }
            Extent::Static(_) | Extent::Dynamic => {}
        }
    }
    Ok(())
}

fn shared(draft: &Draft) -> Result<(), VerifyReason> {
    let mut bytes = 0u64;
    for shared in &draft.shared {
        let Some(count) = shared.count else { continue };
        if count == 0 {
            let what = format!("the count of `{}`", shared.name);
            return Err(VerifyReason::Size { what, size: 0, rule: "must be at least 1".to_owned() });
        }
        bytes = bytes.next_multiple_of(16).saturating_add(count.saturating_mul(shared.element.bytes()));
        if bytes > MAX_SHARED_BYTES {
            let rule = format!("can be at most {MAX_SHARED_BYTES} bytes; make one dynamic to have more");
            return Err(VerifyReason::Size { what: "shared memory".to_owned(), size: bytes, rule });
        }
    }
    let mut open = draft.shared.iter().filter(|shared| shared.count.is_none());
    match (open.next(), open.next()) {
        (Some(first), Some(second)) => {
            let what = format!("`{}` and `{}` are both dynamic; only one can be", first.name, second.name);
            Err(VerifyReason::Declaration { what })
        }
        _ => Ok(()),
    }
}

fn tiles(draft: &Draft) -> Result<(), VerifyReason> {
    let wrong = |what: String, size: u64, rule: String| Err(VerifyReason::Size { what, size, rule });
    for tile in &draft.tiles {
        let name = &tile.name;
        if !matches!(tile.element, Type::F32 | Type::I32 | Type::F64) {
            let (what, expected) = (format!("the element of tile `{name}`"), "f32, i32 or f64".to_owned());
            return Err(VerifyReason::Type { what, expected, found: tile.element });
        }
        for (what, count, unit) in
            [("rows", tile.rows, FRAGMENT_ROWS), ("columns", tile.columns, FRAGMENT_COLUMNS)]
        {
            if count == 0 || count % unit != 0 {
                let what = format!("the number of {what} of tile `{name}`");
                return wrong(what, count.into(), format!("must be a multiple of {unit}"));
            }
        }
        let bytes = u64::from(tile.rows) * u64::from(tile.columns) * tile.element.bytes();
        if bytes > MAX_TILE_BYTES {
            let what = format!("the size of tile `{name}`");
            return wrong(what, bytes, format!("can be at most {MAX_TILE_BYTES} bytes; use several tiles"));
        }
    }
    let threads: u32 = draft.block.iter().product();
    if !draft.tiles.is_empty() && !threads.is_multiple_of(32) {
        let what = "the number of threads of a block".to_owned();
        return wrong(what, threads.into(), "must be a multiple of 32 where there are tiles".to_owned());
    }
    Ok(())
}
