//! Code as a program gives it: PTX text, or a fat binary that holds some.

use std::borrow::Cow;
use std::ffi::c_void;
use std::io::Read;

use kiln_driver::{Code, DeviceInfo};

use crate::boundary::Answer;
use crate::caller_memory::{Text, fetch_slice};
use crate::records;

const ELF: [u8; 4] = [0x7f, b'E', b'L', b'F'];
/// The byte after it, in files of 64 bits.
const ELF_CLASS_64: [u8; 1] = [2];
const FAT_BINARY: u32 = 0xba55_ed50;
/// What compilers put around a fat binary in a host program.
const WRAPPER: u32 = 0x4662_43b1;
const PTX_KIND: u16 = 1;
/// Bits of an entry's flags that say how it is compressed.
const LZ4: u64 = 0x2000;
const ZSTANDARD: u64 = 0x8000;
/// A fat binary that claims to be larger is refused.
const MOST_BYTES: u64 = 1 << 30;

/// The newest PTX that a driver of this API takes.
const NEWEST_PTX: (u32, u32) = (9, 0);

/// Refuses text that is no PTX, PTX of a version that a driver of this API does not take, and PTX for newer devices.
pub(crate) fn check_header(ptx: &str, device: &DeviceInfo) -> Answer {
    let code = without_comments(ptx);
    let Some(rest) = code.strip_prefix(".version") else {
        records::note_once(
            "no PTX",
            "code was not accepted: the text does not begin with `.version`, so it is no PTX",
        );
        return Err(Code::INVALID_IMAGE);
    };
    let version = rest.split_whitespace().next().unwrap_or_default();
    let (major, minor) = version.split_once('.').unwrap_or((version, "0"));
    let number = |text: &str| text.parse::<u32>().unwrap_or(0);
    if (number(major), number(minor)) > NEWEST_PTX {
        let text = format!(
            "code was not accepted: it is PTX {version}, and this driver takes PTX up to {}.{}",
            NEWEST_PTX.0, NEWEST_PTX.1
        );
        records::note_once(&text, &text);
        return Err(Code(222));
    }
    let (wanted, have) = (target(rest), architecture(device));
    if wanted > have {
        let text = format!("code was not accepted: it is PTX for sm_{wanted}, and the device is sm_{have}");
        records::note_once(&text, &text);
        return Err(Code::INVALID_PTX);
    }
    Ok(())
}

/// The architecture of a device as a number, such as 90 for `sm_90`.
pub(crate) fn architecture(device: &DeviceInfo) -> u32 {
    device.capability.major * 10 + device.capability.minor
}

/// The architecture that a text is for.
fn target(ptx: &str) -> u32 {
    let after = ptx.split_once(".target").and_then(|(_, rest)| rest.trim_start().strip_prefix("sm_"));
    let digits: String = after.unwrap_or_default().chars().take_while(char::is_ascii_digit).collect();
    digits.parse().unwrap_or(0)
}

/// The text without white space and comments at its start.
fn without_comments(text: &str) -> &str {
    let mut rest = text.trim_start();
    loop {
        rest = match (rest.strip_prefix("//"), rest.strip_prefix("/*")) {
            (Some(line), _) => line.split_once('\n').map_or("", |(_, rest)| rest).trim_start(),
            (_, Some(block)) => block.split_once("*/").map_or("", |(_, rest)| rest).trim_start(),
            _ => return rest,
        };
    }
}

/// The PTX at an address.
pub(crate) fn ptx(address: *const c_void, have: u32) -> Answer<String> {
    if address.is_null() {
        return Err(Code::INVALID_VALUE);
    }
    let mut magic = [0; 4];
    fetch_slice(address.addr(), &mut magic)?;
    if magic == ELF {
        // One that is cut in its first bytes is no code of any device.
        let mut class = [0; 1];
        fetch_slice(address.addr() + ELF.len(), &mut class)?;
        return Err(if class == ELF_CLASS_64 { no_ptx("machine code") } else { Code::INVALID_IMAGE });
    }
    match u32::from_le_bytes(magic) {
        WRAPPER => {
            let mut inner = [0; 8];
            fetch_slice(address.addr() + 8, &mut inner)?;
            fat_binary(u64::from_le_bytes(inner) as usize, have)
        }
        FAT_BINARY => fat_binary(address.addr(), have),
        _ => Text::at(address).get(),
    }
}

/// The PTX of code in a file or in memory of ours.
pub(crate) fn ptx_of_bytes(bytes: &[u8], have: u32) -> Answer<String> {
    match bytes {
        [] => Err(Code::INVALID_IMAGE),
        _ if bytes.starts_with(&ELF) => Err(no_ptx("machine code")),
        _ if bytes.starts_with(&FAT_BINARY.to_le_bytes()) => entry_with_ptx(bytes, have),
        _ => {
            let text = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
            Ok(String::from_utf8_lossy(text).into_owned())
        }
    }
}

/// The PTX texts of an object file, or of an archive of such: one of each fat binary in it. Nothing if none of them has PTX.
pub(crate) fn ptx_of_object(bytes: &[u8], have: u32) -> Vec<String> {
    let magic = FAT_BINARY.to_le_bytes();
    let mut texts = Vec::new();
    let mut rest = bytes;
    while let Some(at) = rest.windows(magic.len()).position(|window| window == magic) {
        let (head, size) = (number(rest, at + 6, 2), number(rest, at + 8, 8));
        let end = (at as u64).saturating_add(head).saturating_add(size);
        // What only looks like the start of one has no sizes that fit.
        let fat = usize::try_from(end).ok().and_then(|end| rest.get(at..end));
        if let Some(Ok(Some(text))) = fat.filter(|_| head >= 16).map(|fat| best_ptx(fat, have)) {
            texts.push(text);
        }
        rest = rest.get(at + magic.len()..).unwrap_or_default();
    }
    texts
}

fn fat_binary(address: usize, have: u32) -> Answer<String> {
    let mut header = [0; 16];
    fetch_slice(address, &mut header)?;
    let (magic, head, size) = (number(&header, 0, 4), number(&header, 6, 2), number(&header, 8, 8));
    let total = head.saturating_add(size);
    if magic != u64::from(FAT_BINARY) || total > MOST_BYTES {
        return Err(Code::INVALID_IMAGE);
    }
    let mut bytes = vec![0; total as usize];
    fetch_slice(address, &mut bytes)?;
    entry_with_ptx(&bytes, have)
}

/// The PTX of a fat binary that suits a device best.
fn entry_with_ptx(bytes: &[u8], have: u32) -> Answer<String> {
    best_ptx(bytes, have)?.ok_or_else(|| no_ptx("a fat binary without PTX"))
}

/// The text for the newest architecture that the device has, or else the one for the oldest that it has not.
fn best_ptx(bytes: &[u8], have: u32) -> Answer<Option<String>> {
    let mut at = number(bytes, 6, 2) as usize;
    let mut found: Option<String> = None;
    while let Some(entry) = bytes.get(at..).filter(|entry| entry.len() >= 64) {
        let (kind, head, size) = (number(entry, 0, 2), number(entry, 4, 4), number(entry, 8, 8));
        let (head, size) = (head as usize, size as usize);
        let Some(payload) = head.checked_add(size).and_then(|end| entry.get(head..end)) else { break };
        if kind == u64::from(PTX_KIND) {
            let text = ptx_of_bytes(&unpacked(entry, payload)?, have)?;
            let rank = |text: &str| {
                let wanted = target(text);
                if wanted <= have { (true, i64::from(wanted)) } else { (false, -i64::from(wanted)) }
            };
            if found.as_deref().is_none_or(|before| rank(&text) >= rank(before)) {
                found = Some(text);
            }
        }
        at += head + size;
        if head == 0 {
            break;
        }
    }
    Ok(found)
}

/// The content of an entry, decompressed.
fn unpacked<'a>(entry: &[u8], payload: &'a [u8]) -> Answer<Cow<'a, [u8]>> {
    let flags = number(entry, 40, 8);
    if flags & (LZ4 | ZSTANDARD) == 0 {
        return Ok(Cow::Borrowed(payload));
    }
    // The content is padded; its length and that of the text are in the entry's header.
    let (packed, size) = (number(entry, 16, 4) as usize, number(entry, 56, 8));
    let packed = payload.get(..packed).ok_or(Code::INVALID_IMAGE)?;
    if size > MOST_BYTES {
        return Err(Code::INVALID_IMAGE);
    }
    let text = if flags & LZ4 != 0 {
        lz4_flex::block::decompress(packed, size as usize).ok()
    } else {
        let mut text = Vec::new();
        let decoder = ruzstd::decoding::StreamingDecoder::new(packed).ok();
        // One byte more than there should be is read, so that a longer text is noticed.
        decoder.and_then(|decoder| decoder.take(size + 1).read_to_end(&mut text).ok()).map(|_| text)
    };
    let text = text.filter(|text| text.len() as u64 == size);
    text.map(Cow::Owned).ok_or_else(|| {
        records::note_once("damaged", "the program loads a fat binary whose compressed PTX is damaged");
        Code::INVALID_IMAGE
    })
}

/// An unsigned number at an offset; 0 past the end.
fn number(bytes: &[u8], offset: usize, size: usize) -> u64 {
    let digits = bytes.get(offset..offset + size).unwrap_or_default();
    digits.iter().rev().fold(0, |number, digit| number << 8 | u64::from(*digit))
}

pub(crate) fn no_ptx(what: &str) -> Code {
    let text = format!(
        "the program loads {what}, and the simulated device runs PTX; build it with PTX (nvcc -gencode arch=compute_90,code=compute_90)"
    );
    records::note_once(what, &text);
    Code::NO_BINARY_FOR_GPU
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fat(entries: &[(u16, u64, &[u8])]) -> Vec<u8> {
        let mut body = Vec::new();
        for (kind, flags, payload) in entries {
            let mut head = [0; 64];
            head[..2].copy_from_slice(&kind.to_le_bytes());
            head[4..8].copy_from_slice(&64_u32.to_le_bytes());
            head[8..16].copy_from_slice(&(payload.len() as u64).to_le_bytes());
            head[40..48].copy_from_slice(&flags.to_le_bytes());
            body.extend_from_slice(&head);
            body.extend_from_slice(payload);
        }
        let mut bytes = FAT_BINARY.to_le_bytes().to_vec();
        bytes.extend_from_slice(&[1, 0, 16, 0]);
        bytes.extend_from_slice(&(body.len() as u64).to_le_bytes());
        bytes.extend_from_slice(&body);
        bytes
    }

    #[test]
    fn ptx_is_found_in_text_and_in_fat_binaries() {
        assert_eq!(ptx_of_bytes(b".version 8.0\0rest", 90).as_deref(), Ok(".version 8.0"));
        let both = fat(&[(2, 0, b"\x7fELF...."), (1, 0, b".version 7.0\0\0\0\0")]);
        assert_eq!(ptx_of_bytes(&both, 90).as_deref(), Ok(".version 7.0"));
        assert_eq!(ptx(both.as_ptr().cast(), 90).as_deref(), Ok(".version 7.0"));
    }

    #[test]
    fn the_text_for_the_newest_architecture_of_the_device_is_taken() {
        let text = |architecture: u32| format!(".version 8.0\n.target sm_{architecture}\n");
        let texts = [75, 90, 80, 121, 100].map(text);
        let entries: Vec<(u16, u64, &[u8])> = texts.iter().map(|text| (1, 0, text.as_bytes())).collect();
        for (have, taken) in [(75, 75), (86, 80), (90, 90), (99, 90), (130, 121), (70, 75)] {
            assert_eq!(ptx_of_bytes(&fat(&entries), have), Ok(text(taken)), "{have}");
        }
    }

    #[test]
    fn every_fat_binary_of_an_object_gives_its_ptx() {
        let mut object = b"!<arch>\nsome header, not aligned".to_vec();
        object.extend(fat(&[(1, 0, b".version 7.0\0\0\0\0")]));
        object.extend(FAT_BINARY.to_le_bytes());
        object.extend(b"between");
        object.extend(fat(&[(2, 0, b"\x7fELF....")]));
        object.extend(fat(&[(1, 0, b".version 8.0\0\0\0\0")]));
        assert_eq!(ptx_of_object(&object, 90), [".version 7.0", ".version 8.0"]);
        object.truncate(object.len() - 1);
        assert_eq!(ptx_of_object(&object, 90), [".version 7.0"]);
        assert_eq!(ptx_of_object(&FAT_BINARY.to_le_bytes(), 90), [""; 0]);
    }

    /// Made by `fatbinary --compress-mode` of CUDA 13.0 from 41 kernels.
    const LZ4_FILE: &[u8] = include_bytes!("../tests/data/lz4.fatbin");
    const ZSTANDARD_FILE: &[u8] = include_bytes!("../tests/data/zstd.fatbin");

    #[test]
    fn compressed_ptx_is_unpacked() {
        let texts = [LZ4_FILE, ZSTANDARD_FILE].map(|file| ptx_of_bytes(file, 90).unwrap());
        assert_eq!(texts[0], texts[1]);
        assert!(texts[0].starts_with(".version 7.0\n.target sm_70\n"), "{}", texts[0]);
        assert_eq!(texts[0].matches(".visible .entry").count(), 41);
    }

    #[test]
    fn damaged_ptx_is_refused_and_crashes_nothing() {
        for file in [LZ4_FILE, ZSTANDARD_FILE] {
            for at in 0..file.len() {
                let mut damaged = file.to_vec();
                damaged[at] ^= 0x55;
                // Some changes leave a text, which the reader of PTX judges.
                let _ = ptx_of_bytes(&damaged, 90);
                let _ = ptx_of_bytes(&file[..at], 90);
            }
            // A size that is not that of the text.
            let mut longer = file.to_vec();
            longer[16 + 56] += 1;
            assert_eq!(ptx_of_bytes(&longer, 90), Err(Code::INVALID_IMAGE));
        }
    }

    #[test]
    fn code_without_ptx_is_refused() {
        for bytes in [b"\x7fELF".to_vec(), fat(&[(2, 0, b"\x7fELF....")])] {
            assert_eq!(ptx_of_bytes(&bytes, 90), Err(Code::NO_BINARY_FOR_GPU));
        }
        // Sizes that lead out of the bytes end the search.
        let mut cut = fat(&[(1, 0, b".version 7.0\0\0\0\0")]);
        cut.truncate(90);
        assert_eq!(ptx_of_bytes(&cut, 90), Err(Code::NO_BINARY_FOR_GPU));
        assert_eq!(ptx(std::ptr::null(), 90), Err(Code::INVALID_VALUE));
    }
}
