//! Text that is safe to print.
//!
//! Names, files, logs and the output of kernels come from outside and may hold bytes that are no text or that a terminal would obey.
//! They are shown as escapes, such as `\x1b` and `\xff`.

use std::fmt::Write;

/// The sequences this command colours its own output with.
const COLOURS: [&str; 7] =
    ["\x1b[0m", "\x1b[31m", "\x1b[32m", "\x1b[33m", "\x1b[35m", "\x1b[36m", "\x1b[90m"];

/// Bytes as text; what is no UTF-8 becomes an escape.
pub(crate) fn text_of(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        for byte in chunk.invalid() {
            let _ = write!(text, "\\x{byte:02x}");
        }
    }
    text
}

/// Text without control characters, except for line ends, tabs and, where they are wanted, this command's colours.
pub(crate) fn printable(text: &str, colours: bool) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let colour = COLOURS.iter().find(|colour| colours && rest.starts_with(**colour));
        let (piece, length) = match (first, colour) {
            (_, Some(colour)) => ((*colour).to_owned(), colour.len()),
            ('\n' | '\t', _) => (first.to_string(), 1),
            _ if first.is_control() => (format!("\\x{:02x}", u32::from(first)), first.len_utf8()),
            // Marks that turn the direction of the text behind them.
            ('\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}', _) => {
                (format!("\\u{{{:x}}}", u32::from(first)), first.len_utf8())
            }
            _ => (first.to_string(), first.len_utf8()),
        };
        shown.push_str(&piece);
        rest = &rest[length..];
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_are_no_text_become_escapes() {
        assert_eq!(text_of(b"a\xff\xfeb\xc3\xa4"), "a\\xff\\xfeb\u{e4}");
    }

    #[test]
    fn control_characters_become_escapes_and_own_colours_stay_where_wanted() {
        let text = "a\tb\n\x07\x1b]0;title\x1b[2J\x1b[31mred\x1b[0m\u{9b}";
        assert_eq!(printable(text, false), "a\tb\n\\x07\\x1b]0;title\\x1b[2J\\x1b[31mred\\x1b[0m\\x9b");
        assert_eq!(printable(text, true), "a\tb\n\\x07\\x1b]0;title\\x1b[2J\x1b[31mred\x1b[0m\\x9b");
    }
}
