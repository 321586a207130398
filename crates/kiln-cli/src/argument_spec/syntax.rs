//! How an argument is written.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::str::FromStr;

use super::{Spec, Start, TextureSpec};
use crate::element_type::ElementType;

/// The deepest nesting of structs.
const MAX_NESTING: usize = 16;

const FORMS: &str = "write in:FILE, out:TYPE:LENGTH:FILE (or zeros:, uninit:), scratch:TYPE:LENGTH, inout:FILE:FILE (or inout:FILE, which is not kept), null, TYPE:VALUE such as f32:2.5, \
                     'struct:{FIELD,...}', bytes:HEX, tex:GEOMETRY:FILE or surf:GEOMETRY:FILE:FILE";

impl FromStr for Spec {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Reader { path: |name| PathBuf::from(name) }.parse(text, 0)
    }
}

impl Spec {
    /// Reads a word of the command line. Names of files in it may be no text.
    pub(crate) fn of_word(word: &OsStr) -> Result<Self, String> {
        match word.to_str() {
            Some(text) => text.parse(),
            None => of_bytes(word),
        }
    }
}

/// Reads a word with bytes that are no text: as if each byte were a letter, which names of files are made of again.
#[cfg(unix)]
fn of_bytes(word: &OsStr) -> Result<Spec, String> {
    use std::ffi::OsString;
    use std::os::unix::ffi::{OsStrExt, OsStringExt};
    let path = |name: &str| {
        let bytes = name.chars().filter_map(|letter| u8::try_from(letter).ok()).collect();
        PathBuf::from(OsString::from_vec(bytes))
    };
    let letters: String = word.as_bytes().iter().map(|byte| char::from(*byte)).collect();
    Reader { path }.parse(&letters, 0)
}

#[cfg(not(unix))]
fn of_bytes(word: &OsStr) -> Result<Spec, String> {
    Err(format!("`{}` is no text; {FORMS}", word.to_string_lossy()))
}

/// Reads arguments; how the name of a file is made of letters is given.
#[derive(Clone, Copy)]
struct Reader {
    path: fn(&str) -> PathBuf,
}

impl Reader {
    fn parse(self, text: &str, depth: usize) -> Result<Spec, String> {
        if text == "null" {
            return Ok(Spec::Null);
        }
        let (kind, rest) = text.split_once(':').ok_or_else(|| format!("`{text}` has no colon; {FORMS}"))?;
        let file = |name: &str| self.file(text, name);
        match kind {
            "in" => Ok(Spec::In { from: file(rest)? }),
            "out" => self.new_array(text, rest, Start::Output),
            "zeros" => self.new_array(text, rest, Start::Zeros),
            "uninit" => self.new_array(text, rest, Start::Uninitialised),
            "scratch" => self.new_array(text, rest, Start::Scratch),
            "inout" => {
                let (from, to) = rest.split_once(':').map_or((rest, None), |(from, to)| (from, Some(to)));
                Ok(Spec::InOut { from: file(from)?, to: to.map(file).transpose()? })
            }
            "tex" | "surf" => self.texture(text, rest, kind == "surf"),
            "bytes" => hex(rest).map(Spec::Bytes).ok_or_else(|| {
                format!("`{rest}` in `{text}` is not hexadecimal; write two digits for each byte")
            }),
            "struct" => self.fields(text, rest, depth).map(Spec::Struct),
            element => {
                let element: ElementType = element.parse().map_err(|_| {
                    let types = ElementType::all_names();
                    format!("`{kind}:` is no kind of argument; {FORMS}; element types are {types}")
                })?;
                let bytes = element
                    .parse_value(rest)
                    .ok_or_else(|| format!("`{rest}` in `{text}` is not a value of type {element}"))?;
                Ok(Spec::Value { element, text: rest.to_owned(), bytes })
            }
        }
    }

    fn file(self, text: &str, name: &str) -> Result<PathBuf, String> {
        match name {
            "" => Err(format!("`{text}` names no file; {FORMS}")),
            name => Ok((self.path)(name)),
        }
    }

    /// `TYPE:LENGTH:FILE` or `TYPE:LENGTH` behind the word for what the array holds at first.
    fn new_array(self, text: &str, rest: &str, start: Start) -> Result<Spec, String> {
        let mut parts = rest.splitn(3, ':');
        let form = match start {
            Start::Scratch => "scratch:TYPE:LENGTH".to_owned(),
            _ => format!("{}:TYPE:LENGTH:FILE, or without the file if the array is not kept", start.word()),
        };
        let (Some(element), Some(len)) = (parts.next(), parts.next()) else {
            return Err(format!("`{text}` is not {form}"));
        };
        let element = element.parse()?;
        let len = len
            .parse()
            .map_err(|_| format!("`{len}` in `{text}` is not a number of elements; write {form}"))?;
        let to = parts.next().map(|to| self.file(text, to)).transpose()?;
        if start == Start::Scratch && to.is_some() {
            return Err(format!(
                "`{text}` names a file, and scratch memory is not kept; write {form}, or uninit: to keep the array"
            ));
        }
        Ok(Spec::Out { start, element, len, to })
    }

    /// `GEOMETRY:FILE`, and for a surface perhaps another file.
    fn texture(self, text: &str, rest: &str, is_surface: bool) -> Result<Spec, String> {
        let form = if is_surface { "surf:2d:FILE:FILE or surf:2d:FILE" } else { "tex:2d+linear:FILE" };
        let (words, from) = rest.split_once(':').ok_or_else(|| format!("`{text}` is not {form}"))?;
        let texture = TextureSpec::parse(words).map_err(|why| format!("`{text}`: {why}"))?;
        if !is_surface {
            return Ok(Spec::Texture { texture, from: self.file(text, from)? });
        }
        let (from, to) = from.split_once(':').map_or((from, None), |(from, to)| (from, Some(to)));
        let to = to.map(|to| self.file(text, to)).transpose()?;
        Ok(Spec::Surface { texture, from: self.file(text, from)?, to })
    }

    /// The fields between the braces of a struct.
    fn fields(self, text: &str, rest: &str, depth: usize) -> Result<Vec<Spec>, String> {
        let inner = rest.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')).ok_or_else(|| {
        format!(
            "`{text}` is not a struct; write 'struct:{{f32:1.5,u32:2}}' in quotes, which shells leave alone"
        )
    })?;
        if depth == MAX_NESTING {
            return Err(format!("structs are nested more than {MAX_NESTING} deep"));
        }
        split(inner)
            .ok_or_else(|| format!("the braces in `{text}` do not match"))?
            .into_iter()
            .map(|field| self.parse(field.trim(), depth + 1))
            .collect()
    }
}

/// The parts between commas that stand in no inner braces; none if braces do not match.
fn split(text: &str) -> Option<Vec<&str>> {
    let (mut depth, mut start) = (0_usize, 0);
    let mut parts = Vec::new();
    for (at, c) in text.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth = depth.checked_sub(1)?,
            ',' if depth == 0 => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    if !text.trim().is_empty() {
        parts.push(&text[start..]);
    }
    (depth == 0).then_some(parts)
}

/// Bytes of hexadecimal digits, in which underscores are ignored.
fn hex(text: &str) -> Option<Vec<u8>> {
    let digits = text.chars().filter(|c| *c != '_').map(|c| c.to_digit(16)).collect::<Option<Vec<_>>>()?;
    let pairs = digits.chunks_exact(2);
    (pairs.remainder().is_empty() && !digits.is_empty())
        .then(|| pairs.map(|pair| (pair[0] * 16 + pair[1]) as u8).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_reads_and_prints_back() {
        for text in [
            "in:a.npy",
            "out:f32:1024:b.npy",
            "zeros:i64:3:b.npy",
            "uninit:f32:1024:b.npy",
            "out:u32:32",
            "scratch:f32:32",
            "zeros:u32:32",
            "struct:{out:u32:32,uninit:f32:1}",
            "inout:a.npy:b.npy",
            "inout:a.npy",
            "null",
            "f32:2.5",
            "i32:-7",
            "u64:0x9",
            "bytes:00ff12",
            "struct:{f32:1.5,u32:2}",
            "struct:{in:a.npy,struct:{null,bytes:01},inout:a.npy:b.npy}",
            "struct:{}",
            "tex:2d+linear+wrap:a.npy",
            "surf:a2d:a.npy:b.npy",
            "surf:1d:a.npy",
        ] {
            assert_eq!(text.parse::<Spec>().unwrap().to_string(), text);
        }
        assert_eq!("bytes:00_FF".parse(), Ok(Spec::Bytes(vec![0, 255])));
        assert_eq!("struct:{ u8:1, u8:2 }".parse::<Spec>().unwrap().to_string(), "struct:{u8:1,u8:2}");
        let colons = "out:int16:3:C:/b.npy".parse::<Spec>().unwrap();
        assert_eq!(
            colons,
            Spec::Out {
                start: Start::Output,
                element: ElementType::I16,
                len: 3,
                to: Some(PathBuf::from("C:/b.npy"))
            },
            "only what comes before the file may not have colons"
        );
    }

    #[cfg(unix)]
    #[test]
    fn names_of_files_may_be_no_text() {
        use std::os::unix::ffi::OsStrExt;
        let of = |bytes: &[u8]| Spec::of_word(OsStr::from_bytes(bytes));
        let path = |bytes: &[u8]| PathBuf::from(OsStr::from_bytes(bytes));
        assert_eq!(of(b"in:a\xff\xc3\xa4.npy"), Ok(Spec::In { from: path(b"a\xff\xc3\xa4.npy") }));
        let both = Spec::InOut { from: path(b"\xff"), to: Some(path(b"\xfe")) };
        assert_eq!(of(b"struct:{inout:\xff:\xfe,u32:1}").map(|spec| spec.inputs().len()), Ok(1));
        assert_eq!(of(b"inout:\xff:\xfe"), Ok(both));
        assert_eq!(of("in:\u{e4}.npy".as_bytes()), Ok(Spec::In { from: PathBuf::from("\u{e4}.npy") }));
        assert!(of(b"f32:\xff").unwrap_err().contains("not a value of type f32"));
    }

    #[test]
    fn anything_else_is_answered_with_the_right_form() {
        for (text, word) in [
            ("a.npy", "no colon"),
            ("in:", "no file"),
            ("out:f32:b.npy", "out:TYPE:LENGTH:FILE"),
            ("uninit:f32:b.npy", "uninit:TYPE:LENGTH:FILE"),
            ("out:f32", "out:TYPE:LENGTH:FILE"),
            ("scratch:f32", "scratch:TYPE:LENGTH"),
            ("scratch:f32:4:b.npy", "scratch memory is not kept"),
            ("out:f32:4:", "names no file"),
            ("out:f32:-1:b.npy", "number of elements"),
            ("out:f31:1:b.npy", "element type"),
            ("inout:", "names no file"),
            ("inout:a.npy:", "names no file"),
            ("i32:2.5", "not a value of type i32"),
            ("i32:4294967296", "not a value of type i32"),
            ("float:1", "element types are bool, i8"),
            ("wat:f32:5:o", "`wat:` is no kind of argument; write in:FILE, out:TYPE:LENGTH:FILE"),
            ("bytes:0", "two digits"),
            ("bytes:", "two digits"),
            ("bytes:0g", "two digits"),
            ("struct:f32:1.0", "in quotes"),
            ("struct:{f32:1.0", "in quotes"),
            ("struct:{f32:1,}", "no colon"),
            ("struct:{}}", "do not match"),
            ("struct:{f32:x}", "not a value of type f32"),
            ("tex:a.npy", "is not tex:2d+linear:FILE"),
            ("tex:4d:a.npy", "no geometry"),
            ("surf:2d:a.npy:", "names no file"),
        ] {
            let wrong = text.parse::<Spec>().unwrap_err();
            assert!(wrong.contains(word), "{text}: {wrong}");
        }
        let deep = format!("{}{}", "struct:{".repeat(100), "}".repeat(100));
        assert!(deep.parse::<Spec>().unwrap_err().contains("nested"));
    }
}
