//! The compiler's log, read.
//!
//! NVRTC and the assembler behind it write text for people. Each message begins on a new line, in one of three
//! forms, and the lines that belong to it are indented or begin with it:
//!
//! ```text
//! axpy.cu(3): error: identifier "x" is undefined
//!       x[i] = 1;
//!       ^
//! nvrtc: error: unrecognized option --bogus found
//! ptxas application ptx input, line 27; error   : Not a name of any known instruction: 'bogus'
//! ```

use std::fmt;

/// One message of the compiler.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Diagnostic {
    /// How bad it is.
    pub severity: DiagnosticSeverity,
    /// The file, as it was named; none for a message about the call itself.
    pub file: Option<String>,
    /// The line, from 1.
    pub line: Option<u32>,
    /// The column, from 1, where the compiler pointed at one.
    pub column: Option<u32>,
    /// The number by which a warning can be turned off.
    pub number: Option<u32>,
    /// What it says.
    pub message: String,
    /// The lines below it: the source, the mark under it, and where templates were instantiated.
    pub detail: String,
}

/// How bad a message is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum DiagnosticSeverity {
    /// For information.
    Remark,
    /// The code was compiled and may not mean what it says.
    Warning,
    /// The code was not compiled.
    Error,
}

impl Diagnostic {
    /// Reads all messages of a log; lines that belong to none are left out.
    pub fn parse(log: &str) -> Vec<Self> {
        let mut found: Vec<Self> = Vec::new();
        let mut inside = false;
        for line in log.lines() {
            if let Some(diagnostic) = Self::parse_first_line(line) {
                found.push(diagnostic);
                inside = true;
            } else if line.trim().is_empty() {
                inside = false;
            } else if let (true, true, Some(last)) = (inside, line.starts_with("  "), found.last_mut()) {
                last.add_detail(line);
            }
        }
        found
    }

    fn parse_first_line(line: &str) -> Option<Self> {
        if line.starts_with(' ') {
            return None;
        }
        if let Some(rest) = line.strip_prefix("ptxas ") {
            return Self::parse_assembler_line(rest);
        }
        if let Some(rest) = line.strip_prefix("nvrtc: ") {
            return parse_message(rest).map(|message| message.at(None, None));
        }
        // A file name may hold parentheses and colons, so the place is looked for from the right.
        line.match_indices("): ").find_map(|(end, _)| {
            let start = line[..end].rfind('(')?;
            let number = line[start + 1..end].parse().ok()?;
            let message = parse_message(&line[end + 3..])?;
            Some(message.at(Some(line[..start].to_owned()), Some(number)))
        })
    }

    /// `application ptx input, line 27; error   : text`, or `fatal   : text`.
    fn parse_assembler_line(rest: &str) -> Option<Self> {
        let (place, text) = match rest.split_once("; ") {
            Some((place, text)) if place.contains(", line ") => (Some(place), text),
            _ => (None, rest),
        };
        let message = parse_message(text)?;
        let line = place.and_then(|place| place.rsplit_once(", line ")?.1.parse().ok());
        Some(message.at(place.map(|_| "PTX".into()), line))
    }

    fn add_detail(&mut self, line: &str) {
        if self.column.is_none() && line.trim() == "^" {
            // The source is shown indented by two.
            self.column = line.find('^').and_then(|at| u32::try_from(at).ok()).map(|at| at.saturating_sub(1));
        }
        if !self.detail.is_empty() {
            self.detail.push('\n');
        }
        self.detail.push_str(line);
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(file) = &self.file {
            f.write_str(file)?;
            let place = [self.line, self.column];
            place.into_iter().map_while(|number| number).try_for_each(|number| write!(f, ":{number}"))?;
            f.write_str(": ")?;
        }
        write!(f, "{}: {}", self.severity, self.message)
    }
}

impl fmt::Display for DiagnosticSeverity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Remark => "remark",
            Self::Warning => "warning",
            Self::Error => "error",
        })
    }
}

/// A message before its place is known.
struct Message {
    severity: DiagnosticSeverity,
    number: Option<u32>,
    text: String,
}

impl Message {
    fn at(self, file: Option<String>, line: Option<u32>) -> Diagnostic {
        Diagnostic {
            severity: self.severity,
            file,
            line,
            column: None,
            number: self.number,
            message: self.text,
            detail: String::new(),
        }
    }
}

/// `error: text`, `warning #177-D: text`, `fatal   : text`.
fn parse_message(text: &str) -> Option<Message> {
    const WORDS: [(&str, DiagnosticSeverity); 6] = [
        ("catastrophic error", DiagnosticSeverity::Error),
        ("error", DiagnosticSeverity::Error),
        ("fatal", DiagnosticSeverity::Error),
        ("warning", DiagnosticSeverity::Warning),
        ("remark", DiagnosticSeverity::Remark),
        ("info", DiagnosticSeverity::Remark),
    ];
    let (rest, severity) =
        WORDS.into_iter().find_map(|(word, severity)| Some((text.strip_prefix(word)?, severity)))?;
    let (tag, message) = rest.split_once(':')?;
    let tag = tag.trim();
    let number = tag.strip_prefix('#').and_then(|tag| tag.trim_end_matches("-D").parse().ok());
    (tag.is_empty() || tag.starts_with('#')).then(|| Message {
        severity,
        number,
        text: message.trim().into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_form_of_message_is_read() {
        let log = "\
a (1): b.cu(12): error: identifier \"q\" is undefined
      q[0] = 1;
      ^
          detected during instantiation of \"T sq(T)\" at line 2

k.cu(1): warning #177-D: variable \"unused\" was declared but never referenced
  int unused;
      ^

Remark: The warnings can be suppressed with \"-diag-suppress <warning-number>\"

k.cu(3): catastrophic error: cannot open source file \"nope.h\"

1 catastrophic error detected in the compilation of \"k.cu\".
Compilation terminated.
nvrtc: error: invalid value for --gpu-architecture (-arch)
ptxas application ptx input, line 27; error   : Unknown modifier '.instr'
ptxas fatal   : Ptx assembly aborted due to errors
";
        let found = Diagnostic::parse(log);
        let shown: Vec<String> = found.iter().map(Diagnostic::to_string).collect();
        assert_eq!(
            shown,
            [
                "a (1): b.cu:12:5: error: identifier \"q\" is undefined",
                "k.cu:1:5: warning: variable \"unused\" was declared but never referenced",
                "k.cu:3: error: cannot open source file \"nope.h\"",
                "error: invalid value for --gpu-architecture (-arch)",
                "PTX:27: error: Unknown modifier '.instr'",
                "error: Ptx assembly aborted due to errors",
            ]
        );
        assert!(found[0].detail.contains("detected during instantiation"));
        assert_eq!((found[1].number, found[1].severity), (Some(177), DiagnosticSeverity::Warning));
    }

    #[test]
    fn text_that_only_looks_like_a_message_is_none() {
        for line in [
            "",
            "error",
            "f(x): no severity",
            "f(): error: no line",
            "(1)",
            "an error: in prose",
            "ptxas info",
        ] {
            assert_eq!(Diagnostic::parse(line), [], "{line}");
        }
    }
}
