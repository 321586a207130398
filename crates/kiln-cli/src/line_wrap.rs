//! Lines no wider than the terminal.

/// How far the second and later lines of a broken line are indented beyond the first.
const HANG: usize = 4;
/// The fewest columns in which text is set behind a prefix.
const LEAST_ROOM: usize = 24;

/// Breaks lines that are wider than `columns` between words, and within a word that is wider itself. A continued line is indented.
pub(crate) fn wrap(text: &str, columns: usize) -> String {
    text.split('\n').map(|line| wrap_line(line, columns.max(1), HANG)).collect::<Vec<_>>().join("\n")
}

/// Text behind a prefix; further lines begin below the text, or at the usual indent where there is little room.
pub(crate) fn wrap_behind(prefix: &str, text: &str, columns: usize) -> String {
    let indent = width(prefix);
    if indent.saturating_add(LEAST_ROOM) > columns {
        return wrap(&format!("{prefix}{text}"), columns);
    }
    let wrapped = wrap_words(text, columns - indent);
    let lines: Vec<&str> = wrapped.split('\n').collect();
    format!("{prefix}{}", lines.join(&format!("\n{:indent$}", "")))
}

/// Breaks a text between words, without an indent.
fn wrap_words(text: &str, columns: usize) -> String {
    text.split('\n').map(|line| wrap_line(line, columns, 0)).collect::<Vec<_>>().join("\n")
}

/// The columns a text takes; colour sequences take none.
pub(crate) fn width(text: &str) -> usize {
    let mut columns = 0;
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\x1b' => while chars.next().is_some_and(|c| c != 'm') {},
            _ => columns += 1,
        }
    }
    columns
}

fn wrap_line(line: &str, columns: usize, hang: usize) -> String {
    if width(line) <= columns {
        return line.to_owned();
    }
    let first_indent = line.len() - line.trim_start_matches(' ').len();
    let indent = (first_indent + hang).min(columns / 2);
    let mut lines = vec![" ".repeat(first_indent.min(columns / 2))];
    let mut empty = true;
    for word in line.trim_start_matches(' ').split(' ') {
        let used = lines.last().map_or(0, |line| width(line));
        if !empty && used + 1 + width(word) > columns {
            lines.push(" ".repeat(indent));
            empty = true;
        }
        push_word(&mut lines, word, empty, columns, indent);
        empty = false;
    }
    lines.iter().map(|line| line.trim_end()).collect::<Vec<_>>().join("\n")
}

/// Appends a word to the last line; one that is wider than a line is cut.
fn push_word(lines: &mut Vec<String>, word: &str, empty: bool, columns: usize, indent: usize) {
    let Some(last) = lines.last_mut() else { return };
    if !empty {
        last.push(' ');
    }
    let mut room = columns.saturating_sub(width(last));
    if width(word) <= room || word.contains('\x1b') {
        return last.push_str(word);
    }
    let mut line = std::mem::take(last);
    for c in word.chars() {
        if room == 0 {
            lines.insert(lines.len() - 1, std::mem::replace(&mut line, " ".repeat(indent)));
            room = columns - indent;
        }
        line.push(c);
        room -= 1;
    }
    if let Some(last) = lines.last_mut() {
        *last = line;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_break_between_words_and_lose_none() {
        assert_eq!(wrap("one two three\nfour", 9), "one two\n    three\nfour");
        assert_eq!(wrap("one two three", 100), "one two three");
        assert_eq!(wrap("  a   b", 80), "  a   b", "what fits stays as it is");
    }

    #[test]
    fn a_word_wider_than_a_line_is_cut() {
        assert_eq!(wrap("abcdefghij", 4), "abcd\n  ef\n  gh\n  ij");
        assert_eq!(wrap("x abcdefghij", 6), "x\n   abc\n   def\n   ghi\n   j");
    }

    #[test]
    fn colours_take_no_columns() {
        assert_eq!(width("\x1b[31mred\x1b[0m"), 3);
        assert_eq!(wrap("\x1b[31mred\x1b[0m one", 7), "\x1b[31mred\x1b[0m one");
    }

    #[test]
    fn text_stands_behind_its_prefix() {
        assert_eq!(
            wrap_behind("  name  ", "one two three four five six", 34),
            "  name  one two three four five\n        six"
        );
        assert_eq!(
            wrap_behind("  a long name  ", "one two three", 20),
            "  a long name  one\n      two three"
        );
    }

    #[test]
    fn no_line_is_wider_than_asked() {
        let text =
            "    indented words and averyveryverylongwordindeed in between, then more of them to the end";
        for columns in 1..60 {
            let behind = wrap_behind("  prefix ", text, columns);
            for line in wrap(text, columns).lines().chain(behind.lines()) {
                assert!(width(line) <= columns, "{columns}: {line:?}");
            }
        }
    }
}
