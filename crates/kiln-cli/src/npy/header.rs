//! The header of a `.npy` file: a magic word, a version, and a Python dictionary of three keys.

use super::NpyError;
use crate::element_type::ElementType;

const MAGIC: &[u8] = b"\x93NUMPY";
/// Numpy itself refuses longer headers unless it is told to trust the file.
const HEADER_LIMIT_BYTES: usize = 1 << 20;
/// Data begins at a multiple of this.
const ALIGNMENT_BYTES: usize = 64;

/// What the dictionary says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Header {
    descr: String,
    pub(super) fortran_order: bool,
    pub(super) shape: Vec<u64>,
}

impl Header {
    /// The header of a file, and the data behind it.
    pub(super) fn decode(file: &[u8]) -> Result<(Self, &[u8]), NpyError> {
        let rest = file.strip_prefix(MAGIC).ok_or(NpyError::Magic)?;
        let (&[major, minor], rest) = rest.split_first_chunk::<2>().ok_or(NpyError::HeaderCut)?;
        let (length, rest) = match major {
            1 => {
                let (length, rest) = rest.split_first_chunk::<2>().ok_or(NpyError::HeaderCut)?;
                (usize::from(u16::from_le_bytes(*length)), rest)
            }
            2 | 3 => {
                let (length, rest) = rest.split_first_chunk::<4>().ok_or(NpyError::HeaderCut)?;
                (u32::from_le_bytes(*length) as usize, rest)
            }
            _ => return Err(NpyError::Version(major, minor)),
        };
        if length > HEADER_LIMIT_BYTES {
            return Err(NpyError::Header(format!("it has {length} bytes")));
        }
        let (header, data) = rest.split_at_checked(length).ok_or(NpyError::HeaderCut)?;
        let text = std::str::from_utf8(header).map_err(|_| NpyError::Header("it is not text".into()))?;
        let mut reader = Reader { rest: text };
        Ok((reader.dictionary().map_err(NpyError::Header)?, data))
    }

    /// The type of the elements.
    pub(super) fn element(&self) -> Result<ElementType, NpyError> {
        let descr = self.descr.as_str();
        // What is little-endian here may also be called native, and single bytes have no order.
        let kind = descr.trim_start_matches(['<', '|', '=']);
        // What ml_dtypes calls bfloat16 is saved as two bytes of no type.
        if kind == "V2" {
            return Ok(ElementType::Bf16);
        }
        let known = |text: String| ElementType::from_descr(&text);
        if let Some(element) = known(format!("<{kind}")).or_else(|| known(format!("|{kind}"))) {
            return Ok(element);
        }
        match descr.strip_prefix('>').and_then(|kind| known(format!("<{kind}"))) {
            Some(_) => Err(NpyError::BigEndian(self.descr.clone())),
            None => Err(NpyError::Dtype(self.descr.clone())),
        }
    }
}

impl Header {
    /// Bytes of the data.
    pub(super) fn data_bytes(&self) -> Result<u64, NpyError> {
        let elements = self.shape.iter().try_fold(1_u64, |all, size| all.checked_mul(*size));
        let bytes = self.element()?.bytes();
        elements.and_then(|all| all.checked_mul(bytes)).ok_or(NpyError::Shape)
    }
}

/// The bytes before the data.
pub(super) fn encode(descr: &str, shape: &[u64]) -> Vec<u8> {
    let sizes: Vec<String> = shape.iter().map(u64::to_string).collect();
    let tuple = match &sizes[..] {
        [only] => format!("({only},)"),
        all => format!("({})", all.join(", ")),
    };
    let mut text = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {tuple}, }}");
    let fits =
        |prefix: usize, text: &str| (prefix + text.len() + 1).next_multiple_of(ALIGNMENT_BYTES) - prefix;
    let short = MAGIC.len() + 4;
    let (prefix, long) =
        if fits(short, &text) <= usize::from(u16::MAX) { (short, false) } else { (short + 2, true) };
    let length = fits(prefix, &text);
    text.extend(std::iter::repeat_n(' ', length - text.len() - 1));
    text.push('\n');
    let mut bytes = MAGIC.to_vec();
    if long {
        bytes.extend([2, 0]);
        bytes.extend((length as u32).to_le_bytes());
    } else {
        bytes.extend([1, 0]);
        bytes.extend((length as u16).to_le_bytes());
    }
    bytes.extend(text.into_bytes());
    bytes
}

/// Reads the little of Python that a header is made of.
struct Reader<'t> {
    rest: &'t str,
}

impl<'t> Reader<'t> {
    fn dictionary(&mut self) -> Result<Header, String> {
        let (mut descr, mut fortran_order, mut shape) = (None, None, None);
        self.expect('{')?;
        while !self.take('}') {
            let key = self.string()?;
            self.expect(':')?;
            match key {
                "descr" => descr = Some(self.descr()?),
                "fortran_order" => fortran_order = Some(self.boolean()?),
                "shape" => shape = Some(self.tuple()?),
                other => return Err(format!("it has the key '{other}'")),
            }
            if !self.take(',') {
                self.expect('}')?;
                break;
            }
        }
        if !self.rest.trim().is_empty() {
            return Err("there is text behind its dictionary".into());
        }
        match (descr, fortran_order, shape) {
            (Some(descr), Some(fortran_order), Some(shape)) => Ok(Header { descr, fortran_order, shape }),
            _ => Err("it lacks one of 'descr', 'fortran_order' and 'shape'".into()),
        }
    }

    fn take(&mut self, wanted: char) -> bool {
        let rest = self.rest.trim_start();
        match rest.strip_prefix(wanted) {
            Some(behind) => {
                self.rest = behind;
                true
            }
            None => false,
        }
    }

    fn expect(&mut self, wanted: char) -> Result<(), String> {
        if self.take(wanted) { Ok(()) } else { Err(format!("a `{wanted}` is missing")) }
    }

    fn string(&mut self) -> Result<&'t str, String> {
        let rest = self.rest.trim_start();
        let quote = rest.chars().next().filter(|c| matches!(c, '\'' | '"')).ok_or("a string is missing")?;
        let (text, behind) = rest[1..].split_once(quote).ok_or("a string does not end")?;
        self.rest = behind;
        Ok(text)
    }

    /// A string, or the list of fields that a structure is.
    fn descr(&mut self) -> Result<String, String> {
        if !self.rest.trim_start().starts_with('[') {
            return self.string().map(str::to_owned);
        }
        let rest = self.rest.trim_start();
        let mut depth = 0_usize;
        for (at, c) in rest.char_indices() {
            match c {
                '[' => depth += 1,
                ']' => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                let (list, behind) = rest.split_at(at + 1);
                self.rest = behind;
                return Ok(list.to_owned());
            }
        }
        Err("a list does not end".into())
    }

    fn boolean(&mut self) -> Result<bool, String> {
        let rest = self.rest.trim_start();
        for (word, value) in [("True", true), ("False", false)] {
            if let Some(behind) = rest.strip_prefix(word) {
                self.rest = behind;
                return Ok(value);
            }
        }
        Err("True or False is missing".into())
    }

    fn tuple(&mut self) -> Result<Vec<u64>, String> {
        let mut sizes = Vec::new();
        self.expect('(')?;
        while !self.take(')') {
            let rest = self.rest.trim_start();
            let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
            let (digits, behind) = rest.split_at(end);
            sizes.push(digits.parse().map_err(|_| "a size of the shape is not a number")?);
            // Python 2 marks long numbers.
            self.rest = behind.strip_prefix('L').unwrap_or(behind);
            if !self.take(',') {
                self.expect(')')?;
                break;
            }
        }
        Ok(sizes)
    }
}
