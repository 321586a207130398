//! Enums whose variants are PTX keywords.
//!
//! PTX has several hundred fixed words. Each group of them is an enum that knows its spelling both ways; one
//! macro writes that, so that the spelling of a word stands in exactly one place.

/// Defines an enum of keywords with `ALL`, `keyword`, `from_keyword` and `Display`.
macro_rules! keywords {
    ($(#[$meta:meta])* $vis:vis enum $name:ident { $($variant:ident = $text:literal),+ $(,)? }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        $vis enum $name {
            $(#[doc = concat!("`", $text, "`")] $variant),+
        }

        impl $name {
            /// Every variant, in declaration order.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The word as PTX spells it, without a leading dot.
            pub fn keyword(self) -> &'static str {
                match self { $(Self::$variant => $text),+ }
            }

            /// The variant that PTX spells `word` (without a leading dot).
            pub fn from_keyword(word: &str) -> Option<Self> {
                match word { $($text => Some(Self::$variant),)+ _ => None }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.keyword())
            }
        }
    };
}

pub(crate) use keywords;
