//! One argument of a kernel, as typed on the command line.

use std::path::PathBuf;
use std::str::FromStr;

use crate::element_type::ElementType;

/// An argument: an array the kernel reads, writes, or both; or a value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Spec {
    /// `in:A.npy`
    In { from: PathBuf },
    /// `out:f32:1024:B.npy`
    Out { element: ElementType, len: u64, to: PathBuf },
    /// `inout:A.npy:B.npy`
    InOut { from: PathBuf, to: PathBuf },
    /// `f32:2.5`
    Value { element: ElementType, text: String, bytes: Vec<u8> },
}

impl Spec {
    /// Where its contents go when the kernel has run.
    pub(crate) fn output(&self) -> Option<&PathBuf> {
        match self {
            Self::Out { to, .. } | Self::InOut { to, .. } => Some(to),
            Self::In { .. } | Self::Value { .. } => None,
        }
    }
}

const FORMS: &str = "write in:FILE, out:TYPE:LEN:FILE, inout:FILE:FILE, or TYPE:VALUE such as f32:2.5";

impl FromStr for Spec {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (kind, rest) = text.split_once(':').ok_or_else(|| format!("`{text}` has no colon; {FORMS}"))?;
        let file = |name: &str| match name {
            "" => Err(format!("`{text}` names no file; {FORMS}")),
            name => Ok(PathBuf::from(name)),
        };
        match kind {
            "in" => Ok(Self::In { from: file(rest)? }),
            "out" => {
                let mut parts = rest.splitn(3, ':');
                let (Some(element), Some(len), Some(to)) = (parts.next(), parts.next(), parts.next()) else {
                    return Err(format!("`{text}` is not out:TYPE:LEN:FILE"));
                };
                let element = element.parse()?;
                let len = len.parse().map_err(|_| format!("`{len}` in `{text}` is no number of elements"))?;
                Ok(Self::Out { element, len, to: file(to)? })
            }
            "inout" => {
                let (from, to) =
                    rest.split_once(':').ok_or_else(|| format!("`{text}` is not inout:FILE:FILE"))?;
                Ok(Self::InOut { from: file(from)?, to: file(to)? })
            }
            element => {
                let element: ElementType = element.parse().map_err(|wrong| format!("{wrong}; {FORMS}"))?;
                let bytes = element
                    .parse_value(rest)
                    .ok_or_else(|| format!("`{rest}` in `{text}` is no {element}"))?;
                Ok(Self::Value { element, text: rest.to_owned(), bytes })
            }
        }
    }
}

impl std::fmt::Display for Spec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::In { from } => write!(f, "in:{}", from.display()),
            Self::Out { element, len, to } => write!(f, "out:{element}:{len}:{}", to.display()),
            Self::InOut { from, to } => write!(f, "inout:{}:{}", from.display(), to.display()),
            Self::Value { element, text, .. } => write!(f, "{element}:{text}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_reads_and_prints_back() {
        for text in ["in:a.npy", "out:f32:1024:b.npy", "inout:a.npy:b.npy", "f32:2.5", "i32:-7", "u64:0x9"] {
            assert_eq!(text.parse::<Spec>().unwrap().to_string(), text);
        }
        let colons = "out:int16:3:C:/b.npy".parse::<Spec>().unwrap();
        assert_eq!(
            colons,
            Spec::Out { element: ElementType::I16, len: 3, to: PathBuf::from("C:/b.npy") },
            "only what comes before the file may not have colons"
        );
    }

    #[test]
    fn what_is_none_of_them_says_what_would_be() {
        for (text, word) in [
            ("a.npy", "no colon"),
            ("in:", "no file"),
            ("out:f32:b.npy", "out:TYPE:LEN:FILE"),
            ("out:f32:-1:b.npy", "number of elements"),
            ("out:f31:1:b.npy", "element type"),
            ("inout:a.npy", "inout:FILE:FILE"),
            ("i32:2.5", "no i32"),
            ("i32:4294967296", "no i32"),
            ("float:1", "element type"),
        ] {
            let wrong = text.parse::<Spec>().unwrap_err();
            assert!(wrong.contains(word), "{text}: {wrong}");
        }
    }
}
