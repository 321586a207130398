//! Linking: several PTX texts become one.
//!
//! The result of a link is PTX, too, which a load takes; programs do not look into it.

use std::ffi::{c_uint, c_void};
use std::sync::{Arc, Mutex, PoisonError};

use cudarc::driver::sys;
use kiln_driver::Code;

use crate::boundary::Answer;
use crate::caller_memory::{In, Out, Text, fetch_slice};
use crate::calls::process_state::{current, state};
use crate::handle_table::RawHandle;
use crate::image::{check_header, ptx_of_bytes};

/// Input of a link; more is refused.
const MOST_BYTES: usize = 1 << 30;

/// A link that is under way.
#[derive(Default)]
pub(crate) struct Link {
    texts: Mutex<Vec<String>>,
    /// The result, which lives as long as the link.
    linked: Mutex<Option<Box<[u8]>>>,
}

fn link(handle: RawHandle) -> Answer<Arc<Link>> {
    state()?.links.get(handle).ok_or(Code::INVALID_HANDLE)
}

fn add(handle: RawHandle, kind: c_uint, bytes: &[u8]) -> Answer {
    use sys::CUjitInputType as I;
    let link = link(handle)?;
    let is_code =
        [I::CU_JIT_INPUT_PTX, I::CU_JIT_INPUT_FATBINARY].iter().any(|known| *known as c_uint == kind);
    if !is_code {
        let is_known = kind < I::CU_JIT_NUM_INPUT_TYPES as c_uint;
        return Err(if is_known { Code::NO_BINARY_FOR_GPU } else { Code::INVALID_VALUE });
    }
    let text = ptx_of_bytes(bytes)?;
    check_header(&text, current()?.1.driver.info())?;
    link.texts.lock().unwrap_or_else(PoisonError::into_inner).push(text);
    Ok(())
}

/// Functions that devices have without a definition in PTX.
const OF_THE_SYSTEM: [&str; 6] =
    ["vprintf", "malloc", "free", "__assertfail", "cudaGetParameterBufferV2", "cudaLaunchDeviceV2"];

/// Functions that the text calls and does not define.
fn unresolved(text: &str) -> Vec<&str> {
    let is_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '$' | '%');
    let declared = |is_extern: bool| {
        text.match_indices(".func").filter_map(move |(at, word)| {
            let before = text.get(..at)?.trim_end();
            let rest = text.get(at + word.len()..)?.trim_start();
            // A result stands in parentheses before the name.
            let rest = match rest.strip_prefix('(') {
                Some(result) => result.split_once(')')?.1.trim_start(),
                None => rest,
            };
            let name = rest.split(|c| !is_name(c)).next().filter(|name| !name.is_empty())?;
            // A declaration ends before a body begins.
            let ends = rest.find(';').unwrap_or(usize::MAX) < rest.find('{').unwrap_or(usize::MAX);
            ((before.ends_with(".extern") || ends) == is_extern).then_some(name)
        })
    };
    let defined: Vec<&str> = declared(false).collect();
    declared(true).filter(|name| !defined.contains(name) && !OF_THE_SYSTEM.contains(name)).collect()
}

/// One text of several: the directives at the start are those of the first.
fn join(texts: &[String]) -> String {
    let mut joined = String::new();
    for (index, text) in texts.iter().enumerate() {
        for line in text.lines() {
            let word = line.split_whitespace().next().unwrap_or_default();
            let is_header = matches!(word, ".version" | ".target" | ".address_size");
            if index == 0 || !is_header {
                joined.push_str(line);
                joined.push('\n');
            }
        }
    }
    joined
}

driver_api! {
    fn cuLinkCreate_v2(_count: c_uint, _keys: In<c_uint>, _values: In<*mut c_void>, out: Out<RawHandle>) {
        let (state, _) = current()?;
        out.check()?;
        out.set(state.links.insert(Arc::new(Link::default())).ok_or(Code::OUT_OF_MEMORY)?)
    }

    fn cuLinkAddData_v2(
        handle: RawHandle,
        kind: c_uint,
        data: usize,
        bytes: usize,
        _name: Text,
        _count: c_uint,
        _keys: In<c_uint>,
        _values: In<*mut c_void>
    ) {
        link(handle)?;
        if bytes == 0 || bytes > MOST_BYTES {
            return Err(Code::INVALID_VALUE);
        }
        let mut input = vec![0; bytes];
        fetch_slice(data, &mut input)?;
        add(handle, kind, &input)
    }

    fn cuLinkAddFile_v2(
        handle: RawHandle, kind: c_uint, path: Text, _count: c_uint, _keys: In<c_uint>, _values: In<*mut c_void>
    ) {
        link(handle)?;
        let input = std::fs::read(path.get()?).map_err(|_| Code::FILE_NOT_FOUND)?;
        add(handle, kind, &input)
    }

    fn cuLinkComplete(handle: RawHandle, out: Out<*const c_void>, bytes: Out<usize>) {
        let link = link(handle)?;
        out.check()?;
        let mut linked = link.linked.lock().unwrap_or_else(PoisonError::into_inner);
        let text = join(&link.texts.lock().unwrap_or_else(PoisonError::into_inner));
        if !unresolved(&text).is_empty() {
            return Err(Code::INVALID_SOURCE);
        }
        let mut text = text.into_bytes();
        text.push(0);
        let text = linked.insert(text.into_boxed_slice());
        bytes.set_if_wanted(text.len());
        out.set(text.as_ptr().cast())
    }

    fn cuLinkDestroy(handle: RawHandle) {
        state()?.links.remove(handle).map(|_| ()).ok_or(Code::INVALID_HANDLE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_texts_lose_their_headers() {
        let texts =
            [".version 8.0\n.target sm_90\n.func a() {}", ".version 7.0\n.address_size 64\n.func b() {}"];
        let joined = join(&texts.map(str::to_owned));
        assert_eq!(joined, ".version 8.0\n.target sm_90\n.func a() {}\n.func b() {}\n");
    }
}
