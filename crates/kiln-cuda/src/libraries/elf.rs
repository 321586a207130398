//! Just enough of ELF to tell a shared library for this machine from a file that only has its name.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

const HEADER_BYTES: usize = 64;
const PROGRAM_BYTES: usize = 56;
const DYNAMIC_BYTES: usize = 16;
/// No library has more segments or dynamic entries; a damaged file may claim to.
const MOST_ENTRIES: usize = 4096;
const LONGEST_NAME_BYTES: usize = 256;

const CLASS_64: u8 = 2;
const LITTLE_ENDIAN: u8 = 1;
const TYPE_SHARED: u16 = 3;
const SEGMENT_LOAD: u32 = 1;
const SEGMENT_DYNAMIC: u32 = 2;
const TAG_END: u64 = 0;
const TAG_STRINGS: u64 = 5;
const TAG_SONAME: u64 = 14;

/// Why a file is no library for this machine, in words.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct NotALibrary {
    pub(super) why: String,
    /// Whether it is a part of one.
    pub(super) is_incomplete: bool,
}

/// What a shared library says of itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct SharedLibrary {
    /// The name it was linked under.
    pub(super) soname: Option<String>,
}

impl SharedLibrary {
    /// Reads a file's headers, and looks whether all that the loader needs of it is there.
    pub(super) fn read(path: &Path) -> Result<Self, NotALibrary> {
        // A pipe would be waited for.
        let known = path.metadata().map_err(|error| error.to_string())?;
        if !known.is_file() {
            return Err("not a file".into());
        }
        let file = File::open(path).map_err(|error| error.to_string())?;
        let header: [u8; HEADER_BYTES] = bytes_at(&file, 0).ok_or("too short for a library")?;
        if !header.starts_with(b"\x7fELF") {
            return Err("not a shared library".into());
        }
        let machine = u16_at(&header, 18);
        if header[4] != CLASS_64 || header[5] != LITTLE_ENDIAN || machine != this_machine() {
            return Err("made for another machine".into());
        }
        if u16_at(&header, 16) != TYPE_SHARED {
            return Err("not a shared library".into());
        }
        check_complete(&file, &header)?;
        Ok(Self { soname: soname(&file, &header) })
    }
}

impl From<String> for NotALibrary {
    fn from(why: String) -> Self {
        Self { why, is_incomplete: false }
    }
}

impl From<&str> for NotALibrary {
    fn from(why: &str) -> Self {
        why.to_owned().into()
    }
}

/// Refuses a file that ends before its program headers, or before a segment that the loader reads: one that was not copied or downloaded to its end. The dynamic
/// section is such a segment.
fn check_complete(file: &File, header: &[u8; HEADER_BYTES]) -> Result<(), NotALibrary> {
    let there = file.metadata().map_err(|error| error.to_string())?.len();
    let end_of = |start: u64, count: u16, each: usize| start.saturating_add(u64::from(count) * each as u64);
    let table = end_of(u64_at(header, 32), u16_at(header, 56), PROGRAM_BYTES);
    let ends = segments(file, header).into_iter().filter_map(|segment| {
        let is_read = matches!(u32_at(&segment, 0), SEGMENT_LOAD | SEGMENT_DYNAMIC);
        is_read.then(|| u64_at(&segment, 8).saturating_add(u64_at(&segment, 32)))
    });
    let needed = ends.fold(table, u64::max);
    if needed <= there {
        return Ok(());
    }
    // What lies behind the segments is no part of what is loaded, but of the file.
    let sections = end_of(u64_at(header, 40), u16_at(header, 60), usize::from(u16_at(header, 58)));
    let whole = needed.max(sections);
    let why = format!("incomplete: {there} of {whole} bytes; install it again");
    Err(NotALibrary { why, is_incomplete: true })
}

/// The program headers that can be read.
fn segments(file: &File, header: &[u8; HEADER_BYTES]) -> Vec<[u8; PROGRAM_BYTES]> {
    let (table, count) = (u64_at(header, 32), u16_at(header, 56) as usize);
    (0..count.min(MOST_ENTRIES))
        .map_while(|index| bytes_at(file, table.checked_add((index * PROGRAM_BYTES) as u64)?))
        .collect()
}

fn this_machine() -> u16 {
    match std::env::consts::ARCH {
        "x86_64" => 62,
        "aarch64" => 183,
        _ => 0,
    }
}

/// The name in the dynamic section, if it can be found.
fn soname(file: &File, header: &[u8; HEADER_BYTES]) -> Option<String> {
    let segments = segments(file, header);
    let dynamic = segments.iter().find(|segment| u32_at(*segment, 0) == SEGMENT_DYNAMIC)?;
    let (start, bytes) = (u64_at(dynamic, 8), u64_at(dynamic, 32));
    let count = (bytes as usize / DYNAMIC_BYTES).min(MOST_ENTRIES);
    let mut name_offset = None;
    let mut strings_address = None;
    for index in 0..count {
        let entry: [u8; DYNAMIC_BYTES] = bytes_at(file, start.checked_add((index * DYNAMIC_BYTES) as u64)?)?;
        match (u64_at(&entry, 0), u64_at(&entry, 8)) {
            (TAG_END, _) => break,
            (TAG_STRINGS, address) => strings_address = Some(address),
            (TAG_SONAME, offset) => name_offset = Some(offset),
            _ => {}
        }
    }
    let address = strings_address?;
    let loaded = segments.iter().find(|segment| {
        let (from, size) = (u64_at(*segment, 16), u64_at(*segment, 32));
        u32_at(*segment, 0) == SEGMENT_LOAD && address >= from && address - from < size
    })?;
    let strings = (address - u64_at(loaded, 16)).checked_add(u64_at(loaded, 8))?;
    text_at(file, strings.checked_add(name_offset?)?)
}

/// Reads at an offset, as much as there is.
fn read_at(mut file: &File, bytes: &mut [u8], offset: u64) -> Option<usize> {
    file.seek(SeekFrom::Start(offset)).ok()?;
    let mut read = 0;
    while read < bytes.len() {
        match file.read(&mut bytes[read..]).ok()? {
            0 => break,
            more => read += more,
        }
    }
    Some(read)
}

fn bytes_at<const N: usize>(file: &File, offset: u64) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    (read_at(file, &mut bytes, offset)? == N).then_some(())?;
    Some(bytes)
}

fn text_at(file: &File, offset: u64) -> Option<String> {
    let mut bytes = [0; LONGEST_NAME_BYTES];
    let read = read_at(file, &mut bytes, offset)?;
    let end = bytes[..read].iter().position(|byte| *byte == 0)?;
    String::from_utf8(bytes[..end].to_vec()).ok()
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(std::array::from_fn(|index| bytes[at + index]))
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(std::array::from_fn(|index| bytes[at + index]))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(std::array::from_fn(|index| bytes[at + index]))
}
