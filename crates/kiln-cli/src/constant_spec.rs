//! The value of a variable of a module, as written on the command line: `NAME=SPEC`.

use std::ffi::OsStr;

use crate::argument_spec::Spec;

const FORMS: &str =
    "write NAME=SPEC, where SPEC is a value such as f32:2.5, in:FILE, 'struct:{f32:1.5,u32:2}' or bytes:HEX";

/// What a `__constant__` or `__device__` variable holds before the launch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct ConstantSpec {
    pub(crate) name: String,
    pub(crate) spec: Spec,
}

impl ConstantSpec {
    /// Reads a word of the command line.
    pub(crate) fn of_word(word: &OsStr) -> Result<Self, String> {
        let Some(text) = word.to_str() else {
            return Err(format!("`{}` is no text; {FORMS}", word.to_string_lossy()));
        };
        let (name, value) = text.split_once('=').ok_or_else(|| FORMS.to_owned())?;
        let (name, spec): (_, Spec) = (name.trim(), value.parse()?);
        if name.is_empty() {
            return Err(format!("it names no variable; {FORMS}"));
        }
        if !is_content(&spec) {
            return Err(format!("{spec} is no content of a variable; {FORMS}"));
        }
        Ok(Self { name: name.to_owned(), spec })
    }
}

/// Whether it has bytes by itself: a pointer of a variable would need memory that lives longer than the launch.
fn is_content(spec: &Spec) -> bool {
    match spec {
        Spec::In { .. } | Spec::Value { .. } | Spec::Bytes(_) => true,
        Spec::Struct(fields) => {
            fields.iter().all(|field| !matches!(field, Spec::In { .. }) && is_content(field))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<ConstantSpec, String> {
        ConstantSpec::of_word(OsStr::new(text))
    }

    #[test]
    fn a_name_and_a_content_are_read() {
        assert_eq!(read("factor=f32:2.5").unwrap().name, "factor");
        assert_eq!(read("lib::table=in:a=b.npy").unwrap().spec.to_string(), "in:a=b.npy");
        assert!(read("s=struct:{f32:1,u32:2}").is_ok() && read("b=bytes:00ff").is_ok());
        for text in ["factor", "=f32:1", "f=out:f32:4", "f=null", "f=struct:{in:x.npy}", "f=f32", "f="] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
