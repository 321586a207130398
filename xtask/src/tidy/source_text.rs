//! Rust source with its comments and texts taken apart.
//!
//! Rules that look for code must not stumble over a string or a comment that mentions it. The source is split into
//! two texts of the same lines and columns: code, in which comments and the insides of literals are blanks, and
//! comments, in which everything else is.

/// The two sides of a source.
#[derive(Debug)]
pub(crate) struct Masked {
    /// Code without comments and without the insides of literals.
    pub(crate) code: String,
    /// Comments without anything else.
    pub(crate) comments: String,
}

impl Masked {
    /// Splits a source.
    pub(crate) fn new(source: &str) -> Self {
        let mut splitter = Splitter {
            chars: source.chars().collect(),
            at: 0,
            masked: Self { code: String::new(), comments: String::new() },
        };
        while splitter.at < splitter.chars.len() {
            splitter.step();
        }
        splitter.masked
    }
}

/// Where a character goes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Code,
    Comment,
    Neither,
}

struct Splitter {
    chars: Vec<char>,
    at: usize,
    masked: Masked,
}

impl Splitter {
    fn step(&mut self) {
        match (self.peek(0), self.peek(1)) {
            ('/', '/') => self.line_comment(),
            ('/', '*') => self.block_comment(),
            ('r', '"' | '#') | ('b' | 'c', 'r') if self.starts_word() && self.raw_hashes().is_some() => {
                self.raw_string();
            }
            ('"', _) => self.quoted('"'),
            ('\'', _) if self.is_char_literal() => self.quoted('\''),
            _ => self.emit(Side::Code),
        }
    }

    fn peek(&self, ahead: usize) -> char {
        self.chars.get(self.at + ahead).copied().unwrap_or('\0')
    }

    /// Whether the character before is not part of the same word.
    fn starts_word(&self) -> bool {
        let before = self.at.checked_sub(1).and_then(|at| self.chars.get(at));
        !before.is_some_and(|c| c.is_alphanumeric() || *c == '_')
    }

    /// Moves one character on; a line end goes to both sides, so that lines stay where they are.
    fn emit(&mut self, side: Side) {
        let Some(&c) = self.chars.get(self.at) else { return };
        self.at += 1;
        let or_blank = |wanted| if c == '\n' || side == wanted { c } else { ' ' };
        self.masked.code.push(or_blank(Side::Code));
        self.masked.comments.push(or_blank(Side::Comment));
    }

    fn line_comment(&mut self) {
        while self.at < self.chars.len() && self.peek(0) != '\n' {
            self.emit(Side::Comment);
        }
    }

    fn block_comment(&mut self) {
        let mut depth = 0;
        while self.at < self.chars.len() {
            match (self.peek(0), self.peek(1)) {
                ('/', '*') => depth += 1,
                ('*', '/') => depth -= 1,
                _ => {
                    self.emit(Side::Comment);
                    continue;
                }
            }
            self.emit(Side::Comment);
            self.emit(Side::Comment);
            if depth == 0 {
                return;
            }
        }
    }

    /// A literal in quotes, with escapes.
    fn quoted(&mut self, quote: char) {
        self.emit(Side::Code);
        while self.at < self.chars.len() && self.peek(0) != quote {
            if self.peek(0) == '\\' {
                self.emit(Side::Neither);
            }
            self.emit(Side::Neither);
        }
        self.emit(Side::Code);
    }

    /// `'a'` and `'\n'` are literals, `'a` is a lifetime.
    fn is_char_literal(&self) -> bool {
        self.peek(1) == '\\' || self.peek(2) == '\''
    }

    /// How many `#` a raw string that begins here has; `None` if none does (`r#name` is a word).
    fn raw_hashes(&self) -> Option<usize> {
        let prefix = if self.peek(0) == 'r' { 1 } else { 2 };
        let hashes = (0..).take_while(|ahead| self.peek(prefix + ahead) == '#').count();
        (self.peek(prefix + hashes) == '"').then_some(hashes)
    }

    fn raw_string(&mut self) {
        let hashes = self.raw_hashes().unwrap_or(0);
        while self.peek(0) != '"' {
            self.emit(Side::Code);
        }
        self.emit(Side::Code);
        while self.at < self.chars.len() {
            if self.peek(0) == '"' && (1..=hashes).all(|ahead| self.peek(ahead) == '#') {
                (0..=hashes).for_each(|_| self.emit(Side::Code));
                return;
            }
            self.emit(Side::Neither);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(source: &str) -> String {
        Masked::new(source).code.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn comments_and_texts_are_no_code() {
        assert_eq!(code("a(); // b()\nc(\"d() \\\" e()\"); /* f /* g */ h */ i"), "a(); c(\" \"); i");
        assert_eq!(code("x(r#\"a \" b\"#); y(br\"c\\\"); z"), "x(r#\" \"#); y(br\" \"); z");
    }

    #[test]
    fn quotes_of_characters_and_lifetimes_are_told_apart() {
        assert_eq!(code("fn f<'a>(x: &'a str) -> char { '{' }"), "fn f<'a>(x: &'a str) -> char { ' ' }");
        assert_eq!(code(r"['\'', '\\', b'}', 'x'] // '"), "[' ', ' ', b' ', ' ']");
    }

    #[test]
    fn words_with_an_r_are_words() {
        assert_eq!(code("r#type; for\"x\"; br; r"), "r#type; for\" \"; br; r");
    }

    #[test]
    fn both_sides_keep_the_lines() {
        let source = "/* a\n b */ c\n\"d\n e\" // f\n";
        let masked = Masked::new(source);
        assert_eq!(masked.code.lines().count(), source.lines().count());
        assert_eq!(masked.comments.lines().nth(1).unwrap().trim(), "b */");
        assert_eq!(masked.comments.lines().nth(3).unwrap().trim(), "// f");
    }
}
