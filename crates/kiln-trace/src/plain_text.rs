//! Text that stays on its line.
//!
//! Names of kernels, streams and tags come from outside. Where they are shown, a line end would begin a line that looks like ours, and a
//! terminal would obey other control characters.

use std::borrow::Cow;
use std::fmt::{self, Display, Formatter, Write};

/// Text in one line: control characters, line ends and marks that turn the direction of text come as escapes, such as `\n` and `\x1b`.
/// A backslash stays as it is, so that a line end and the two characters `\n` look the same.
///
/// ```
/// use kiln_trace::plain_text;
///
/// assert_eq!(plain_text("weights"), "weights");
/// assert_eq!(plain_text("weights\n\x1b[2J"), r"weights\n\x1b[2J");
/// ```
pub fn plain_text(text: &str) -> Cow<'_, str> {
    // Most names are of letters that every terminal has.
    if text.bytes().all(|byte| (b' '..=b'~').contains(&byte)) || !text.contains(is_escaped) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(Plain(text).to_string())
}

/// A text of several lines in one: behind a line that ends without a mark there is a semicolon, so that its words are not read as one sentence with those of the next.
///
/// ```
/// use kiln_trace::text_in_one_line;
///
/// assert_eq!(text_in_one_line("the kernel failed:\n  at line 7\nthe device is lost"), "the kernel failed: at line 7; the device is lost");
/// ```
pub fn text_in_one_line(text: &str) -> String {
    let mut said = String::with_capacity(text.len());
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    for line in text.lines().map(words).filter(|line| !line.is_empty()) {
        let has_mark =
            said.ends_with(['.', ',', ':', ';', '!', '?', '(']) || line.starts_with([')', ',', ';', '.']);
        said += match (said.is_empty(), has_mark) {
            (true, _) => "",
            (false, true) => " ",
            (false, false) => "; ",
        };
        said += &line;
    }
    said
}

/// A text that is shown in one line.
pub(crate) struct Plain<'a>(pub(crate) &'a str);

impl Display for Plain<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let mut rest = self.0;
        while let Some(at) = rest.find(is_escaped) {
            let (before, behind) = rest.split_at(at);
            f.write_str(before)?;
            let mut letters = behind.chars();
            letters.next().map_or(Ok(()), |letter| escape(letter, f))?;
            rest = letters.as_str();
        }
        f.write_str(rest)
    }
}

fn escape(letter: char, f: &mut Formatter<'_>) -> fmt::Result {
    match letter {
        '\n' => f.write_str("\\n"),
        '\r' => f.write_str("\\r"),
        '\t' => f.write_str("\\t"),
        '\0'..='\u{ff}' => write!(f, "\\x{:02x}", u32::from(letter)),
        _ => f
            .write_str("\\u{")
            .and_then(|()| write!(f, "{:x}", u32::from(letter)))
            .and_then(|()| f.write_char('}')),
    }
}

/// Control characters; the ends of lines and paragraphs; what turns the direction of the text behind it.
fn is_escaped(letter: char) -> bool {
    letter.is_control()
        || matches!(letter, '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_obeys_or_ends_a_line_is_escaped_and_the_rest_stays() {
        let text = "größe\r\n\t\0\u{7f}\u{9b}31m\u{2028}\u{202e}日本";
        assert_eq!(plain_text(text), r"größe\r\n\t\x00\x7f\x9b31m\u{2028}\u{202e}日本");
        assert!(matches!(plain_text("größe 日本"), Cow::Borrowed(_)));
        assert_eq!(plain_text(""), "");
    }
}
