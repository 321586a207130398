//! Words as a shell takes them.

use std::ffi::OsStr;
use std::fmt::Write;

/// A word as a shell takes it: as it is, between quotes, or as `$'...'` where it has control characters or bytes that are no text. The last form
/// is that of bash, zsh, ksh and busybox.
///
/// ```
/// use kiln_trace::shell_word;
///
/// assert_eq!(shell_word("train.kiln".as_ref()), "train.kiln");
/// assert_eq!(shell_word("it's mine.kiln".as_ref()), r"'it'\''s mine.kiln'");
/// assert_eq!(shell_word("a\nb".as_ref()), r"$'a\nb'");
/// ```
pub fn shell_word(word: &OsStr) -> String {
    WordText::of(word).quoted()
}

/// A word as text: its letters, or where these cannot be shown, the escapes between `$'` and `'`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct WordText {
    pub(crate) text: String,
    pub(crate) is_escaped: bool,
}

impl WordText {
    pub(crate) fn of(word: &OsStr) -> Self {
        match word.to_str() {
            Some(text) if text.chars().all(is_shown) => Self { text: text.to_owned(), is_escaped: false },
            _ => Self { text: escaped(word.as_encoded_bytes()), is_escaped: true },
        }
    }

    /// What was recorded, of which a file may have made anything.
    pub(crate) fn recorded(text: &str, is_escaped: bool) -> Self {
        match is_escaped && is_well_escaped(text) {
            true => Self { text: text.to_owned(), is_escaped },
            false => Self::of(text.as_ref()),
        }
    }

    pub(crate) fn quoted(&self) -> String {
        let Self { text, is_escaped } = self;
        let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./=:,%+@".contains(letter);
        if *is_escaped {
            format!("$'{text}'")
        } else if !text.is_empty() && text.chars().all(is_plain) {
            text.clone()
        } else {
            format!("'{}'", text.replace('\'', "'\\''"))
        }
    }
}

/// Whether a letter is seen where it is printed, and changes nothing around it.
fn is_shown(letter: char) -> bool {
    let moves_others = matches!(letter, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}');
    !letter.is_control() && !moves_others
}

fn escaped(bytes: &[u8]) -> String {
    let mut text = String::new();
    for chunk in bytes.utf8_chunks() {
        for letter in chunk.valid().chars() {
            match letter {
                '\n' => text.push_str("\\n"),
                '\t' => text.push_str("\\t"),
                '\r' => text.push_str("\\r"),
                '\'' | '\\' => text.extend(['\\', letter]),
                letter if is_shown(letter) => text.push(letter),
                letter => octal(letter.encode_utf8(&mut [0; 4]).as_bytes(), &mut text),
            }
        }
        octal(chunk.invalid(), &mut text);
    }
    text
}

/// Three digits always, so that a digit may follow.
fn octal(bytes: &[u8], text: &mut String) {
    for byte in bytes {
        // Writing to a string cannot fail.
        let _ = write!(text, "\\{byte:03o}");
    }
}

/// Whether a shell reads it to the end of the quotes and no further.
fn is_well_escaped(text: &str) -> bool {
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        let is_good = match letter {
            '\\' => letters.next().is_some_and(|next| "\\'ntr01234567".contains(next)),
            '\'' => false,
            letter => is_shown(letter),
        };
        if !is_good {
            return false;
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_shown_is_escaped() {
        for (word, shown) in [
            ("a b", "'a b'"),
            ("", "''"),
            ("\u{e4}", "'\u{e4}'"),
            ("\x1b[2J7", "$'\\033[2J7'"),
            ("it's\t\\n", "$'it\\'s\\t\\\\n'"),
            ("a\u{202e}b", "$'a\\342\\200\\256b'"),
        ] {
            assert_eq!(shell_word(word.as_ref()), shown);
        }
    }

    #[cfg(unix)]
    #[test]
    fn bytes_that_are_no_text_are_escaped() {
        use std::os::unix::ffi::OsStrExt;
        assert_eq!(shell_word(OsStr::from_bytes(b"a\xff7\xc3\xa4")), "$'a\\3777\u{e4}'");
    }

    #[test]
    fn a_file_cannot_end_the_quotes() {
        for text in ["'; rm -rf x '", "\\", "a\\", "\\q", "\u{1b}"] {
            let word = WordText::recorded(text, true);
            assert_eq!(word, WordText::of(text.as_ref()), "{text}");
        }
        assert_eq!(WordText::recorded("a\\377", true).quoted(), "$'a\\377'");
    }
}
