//! Keys and values of an operation's text.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use crate::error::OperationError;

/// What a value can be: its text, and what is expected where a text is none.
pub(crate) trait Field: fmt::Display + Sized {
    const WANTED: &'static str;

    fn parse(text: &str) -> Option<Self>;
}

impl Field for u64 {
    const WANTED: &'static str = "a number below 2^64, without a sign or leading zeros";

    fn parse(text: &str) -> Option<Self> {
        let number = text.parse::<Self>().ok()?;
        (number.to_string() == text).then_some(number)
    }
}

impl Field for crate::ElementType {
    const WANTED: &'static str = "f8e4m3, f16, bf16, f32, f64, i8 or i32";

    fn parse(text: &str) -> Option<Self> {
        Self::from_str(text).ok()
    }
}

/// An enum whose variants have a word each.
macro_rules! words {
    ($(#[$note:meta])* $name:ident { $($(#[$variant_note:meta])* $variant:ident = $word:literal,)* }) => {
        $(#[$note])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub enum $name { $($(#[$variant_note])* $variant,)* }

        impl $name {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(match self { $(Self::$variant => $word,)* })
            }
        }

        impl crate::field::Field for $name {
            const WANTED: &'static str = concat!("one of" $(, " ", $word)*);

            fn parse(text: &str) -> Option<Self> {
                match text { $($word => Some(Self::$variant),)* _ => None }
            }
        }
    };
}
pub(crate) use words;

impl Field for bool {
    const WANTED: &'static str = "true or false";

    fn parse(text: &str) -> Option<Self> {
        text.parse().ok()
    }
}

/// The keys and values of a text, of which each is taken once.
pub(crate) struct Fields<'t> {
    operation: &'static str,
    keys: &'static [&'static str],
    values: BTreeMap<&'t str, &'t str>,
}

impl<'t> Fields<'t> {
    pub(crate) fn new(
        operation: &'static str,
        keys: &'static [&'static str],
        words: impl Iterator<Item = &'t str>,
    ) -> Result<Self, OperationError> {
        let mut values = BTreeMap::new();
        for word in words {
            let Some((key, value)) = word.split_once('=') else {
                return Err(OperationError::Word { operation, word: word.to_owned() });
            };
            if !keys.contains(&key) || values.insert(key, value).is_some() {
                return Err(OperationError::Key { operation, key: key.to_owned(), known: keys.join(", ") });
            }
        }
        Ok(Self { operation, keys, values })
    }

    /// A value that may be missing.
    pub(crate) fn take_if_there<F: Field>(&mut self, key: &'static str) -> Result<Option<F>, OperationError> {
        self.values.contains_key(key).then(|| self.take(key)).transpose()
    }

    pub(crate) fn take<F: Field>(&mut self, key: &'static str) -> Result<F, OperationError> {
        let operation = self.operation;
        let value = self.values.remove(key).ok_or_else(|| OperationError::Missing {
            operation,
            key,
            known: self.keys.join(", "),
        })?;
        let wanted = F::WANTED;
        F::parse(value).ok_or_else(|| OperationError::Value {
            operation,
            key,
            value: value.to_owned(),
            wanted,
        })
    }
}

/// The struct of an operation with its text: `name key=value ...`, in the order of the fields.
macro_rules! operation {
    ($(#[$note:meta])* $type:ident = $name:literal { $($(#[$field_note:meta])* $field:ident: $kind:ty,)* }) => {
        $(#[$note])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub struct $type { $($(#[$field_note])* pub $field: $kind,)* }

        impl $type {
            /// The name of the operation.
            pub const NAME: &'static str = $name;

            pub(crate) fn from_words<'t>(
                words: impl Iterator<Item = &'t str>,
            ) -> Result<Self, crate::error::OperationError> {
                let keys = &[$(stringify!($field),)*];
                let mut fields = crate::field::Fields::new(Self::NAME, keys, words)?;
                Ok(Self { $($field: fields.take::<$kind>(stringify!($field))?,)* })
            }
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(Self::NAME)?;
                $(write!(f, concat!(" ", stringify!($field), "={}"), self.$field)?;)*
                Ok(())
            }
        }
    };
}
pub(crate) use operation;
