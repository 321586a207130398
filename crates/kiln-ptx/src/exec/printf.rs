//! `printf` formatting, as C defines it.

/// Where the values of the conversions come from.
pub(crate) trait Arguments {
    /// The next argument, of 4 or 8 bytes.
    fn next(&mut self, bytes: u32) -> u64;

    /// The string at an address.
    fn string(&mut self, address: u64) -> Vec<u8>;
}

/// One conversion: `%-8.3lld`.
#[derive(Clone, Debug, Default)]
struct Spec {
    left: bool,
    plus: bool,
    space: bool,
    alternate: bool,
    zero: bool,
    width: usize,
    precision: Option<usize>,
    wide: bool,
    short: u32,
}

/// The widest field; a kernel that asks for more gets this.
const MAX_WIDTH: usize = 4096;

/// Formats `text` with its arguments; how many of them were used.
pub(crate) fn format(text: &[u8], arguments: &mut dyn Arguments, out: &mut Vec<u8>) -> u32 {
    let mut rest = text;
    let mut used = 0;
    while let Some(at) = rest.iter().position(|byte| *byte == b'%') {
        out.extend_from_slice(&rest[..at]);
        let (spec, letter, after) = parse(&rest[at + 1..], arguments);
        rest = after;
        match letter {
            None => return used,
            Some(b'%') => out.push(b'%'),
            Some(letter) => {
                used += 1;
                convert(&spec, letter, arguments, out);
            }
        }
    }
    out.extend_from_slice(rest);
    used
}

fn parse<'t>(text: &'t [u8], arguments: &mut dyn Arguments) -> (Spec, Option<u8>, &'t [u8]) {
    let mut spec = Spec::default();
    let mut at = 0;
    let peek = |at: usize| text.get(at).copied();
    while let Some(flag) = peek(at) {
        match flag {
            b'-' => spec.left = true,
            b'+' => spec.plus = true,
            b' ' => spec.space = true,
            b'#' => spec.alternate = true,
            b'0' => spec.zero = true,
            _ => break,
        }
        at += 1;
    }
    let number = |at: &mut usize, arguments: &mut dyn Arguments| -> i64 {
        if peek(*at) == Some(b'*') {
            *at += 1;
            return i64::from(arguments.next(4) as i32);
        }
        let mut value = 0i64;
        while let Some(digit) = peek(*at).filter(u8::is_ascii_digit) {
            value = (value * 10 + i64::from(digit - b'0')).min(MAX_WIDTH as i64);
            *at += 1;
        }
        value
    };
    let width = number(&mut at, arguments);
    spec.left |= width < 0;
    spec.width = (width.unsigned_abs() as usize).min(MAX_WIDTH);
    if peek(at) == Some(b'.') {
        at += 1;
        spec.precision = usize::try_from(number(&mut at, arguments)).ok().map(|p| p.min(MAX_WIDTH));
    }
    while let Some(size) = peek(at) {
        match size {
            b'l' | b'j' | b'z' | b't' | b'L' => spec.wide = true,
            b'h' => spec.short += 1,
            _ => break,
        }
        at += 1;
    }
    let letter = peek(at);
    (spec, letter, text.get(at + 1..).unwrap_or(&[]))
}

fn convert(spec: &Spec, letter: u8, arguments: &mut dyn Arguments, out: &mut Vec<u8>) {
    match letter {
        b'd' | b'i' => {
            let value = signed(arguments.next(if spec.wide { 8 } else { 4 }), spec);
            let digits = digits(u128::from(value.unsigned_abs()), 10, false, spec);
            pad_number(spec, sign(spec, value < 0), &digits, spec.precision.is_none(), out);
        }
        b'u' | b'o' | b'x' | b'X' => {
            let value = unsigned(arguments.next(if spec.wide { 8 } else { 4 }), spec);
            let base = match letter {
                b'u' => 10,
                b'o' => 8,
                _ => 16,
            };
            let digits = digits(u128::from(value), base, letter == b'X', spec);
            let prefix = match (spec.alternate && value != 0, letter) {
                (true, b'x') => "0x",
                (true, b'X') => "0X",
                (true, b'o') => "0",
                _ => "",
            };
            pad_number(spec, prefix, &digits, spec.precision.is_none(), out);
        }
        b'p' => {
            let digits = format!("{:x}", arguments.next(8));
            pad_number(spec, "0x", &digits, true, out);
        }
        b'c' => pad_text(spec, &[arguments.next(4) as u8], out),
        b's' => {
            let address = arguments.next(8);
            let mut text = arguments.string(address);
            text.truncate(spec.precision.unwrap_or(usize::MAX));
            pad_text(spec, &text, out);
        }
        b'e' | b'E' | b'f' | b'F' | b'g' | b'G' | b'a' | b'A' => {
            let value = f64::from_bits(arguments.next(8));
            let body = float(value.abs(), letter, spec);
            pad_number(
                spec,
                sign(spec, value.is_sign_negative() && !value.is_nan()),
                &body,
                value.is_finite(),
                out,
            );
        }
        other => {
            out.push(b'%');
            out.push(other);
        }
    }
}

fn signed(bits: u64, spec: &Spec) -> i64 {
    match (spec.wide, spec.short) {
        (true, _) => bits as i64,
        (_, 0) => i64::from(bits as i32),
        (_, 1) => i64::from(bits as i16),
        _ => i64::from(bits as i8),
    }
}

fn unsigned(bits: u64, spec: &Spec) -> u64 {
    match (spec.wide, spec.short) {
        (true, _) => bits,
        (_, 0) => u64::from(bits as u32),
        (_, 1) => u64::from(bits as u16),
        _ => u64::from(bits as u8),
    }
}

fn sign(spec: &Spec, negative: bool) -> &'static str {
    match (negative, spec.plus, spec.space) {
        (true, ..) => "-",
        (_, true, _) => "+",
        (_, _, true) => " ",
        _ => "",
    }
}

fn digits(value: u128, base: u32, upper: bool, spec: &Spec) -> String {
    let text = match (base, upper) {
        (8, _) => format!("{value:o}"),
        (16, false) => format!("{value:x}"),
        (16, true) => format!("{value:X}"),
        _ => value.to_string(),
    };
    match spec.precision {
        Some(0) if value == 0 => String::new(),
        Some(least) => format!("{text:0>least$}"),
        None => text,
    }
}

/// A number in its field; zeros go between the sign and the digits.
fn pad_number(spec: &Spec, prefix: &str, body: &str, zeros: bool, out: &mut Vec<u8>) {
    let len = prefix.len() + body.len();
    let fill = spec.width.saturating_sub(len);
    let zeros = spec.zero && zeros && !spec.left;
    if !spec.left && !zeros {
        out.resize(out.len() + fill, b' ');
    }
    out.extend_from_slice(prefix.as_bytes());
    if zeros {
        out.resize(out.len() + fill, b'0');
    }
    out.extend_from_slice(body.as_bytes());
    if spec.left {
        out.resize(out.len() + fill, b' ');
    }
}

fn pad_text(spec: &Spec, text: &[u8], out: &mut Vec<u8>) {
    let fill = spec.width.saturating_sub(text.len());
    if !spec.left {
        out.resize(out.len() + fill, b' ');
    }
    out.extend_from_slice(text);
    if spec.left {
        out.resize(out.len() + fill, b' ');
    }
}

/// A magnitude by one of the float conversions.
fn float(value: f64, letter: u8, spec: &Spec) -> String {
    let text = if value.is_nan() {
        "nan".to_owned()
    } else if value.is_infinite() {
        "inf".to_owned()
    } else {
        match letter.to_ascii_lowercase() {
            b'f' => fixed(value, spec.precision.unwrap_or(6), spec.alternate),
            b'e' => scientific(value, spec.precision.unwrap_or(6), spec.alternate),
            b'g' => general(value, spec.precision.unwrap_or(6).max(1), spec.alternate),
            _ => hexadecimal(value, spec.precision, spec.alternate),
        }
    };
    if letter.is_ascii_uppercase() { text.to_ascii_uppercase() } else { text }
}

fn fixed(value: f64, precision: usize, point: bool) -> String {
    let text = format!("{value:.precision$}");
    if precision == 0 && point { text + "." } else { text }
}

fn scientific(value: f64, precision: usize, point: bool) -> String {
    let (mantissa, exponent) = scientific_parts(value, precision);
    let point = if precision == 0 && point { "." } else { "" };
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{mantissa}{point}e{sign}{:02}", exponent.unsigned_abs())
}

fn scientific_parts(value: f64, precision: usize) -> (String, i32) {
    let text = format!("{value:.precision$e}");
    match text.split_once('e') {
        Some((mantissa, exponent)) => (mantissa.to_owned(), exponent.parse().unwrap_or(0)),
        None => (text, 0),
    }
}

fn general(value: f64, precision: usize, keep_zeros: bool) -> String {
    let (_, exponent) = scientific_parts(value, precision - 1);
    if exponent >= -4 && exponent < precision as i32 {
        let text = fixed(value, (precision as i32 - 1 - exponent) as usize, keep_zeros);
        return if keep_zeros { text } else { trim(&text).to_owned() };
    }
    let text = scientific(value, precision - 1, keep_zeros);
    match (keep_zeros, text.split_once('e')) {
        (false, Some((mantissa, exponent))) => format!("{}e{exponent}", trim(mantissa)),
        _ => text,
    }
}

fn trim(text: &str) -> &str {
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { text }
}

fn hexadecimal(value: f64, precision: Option<usize>, point: bool) -> String {
    const FRACTION_DIGITS: usize = 13;
    let bits = value.to_bits();
    let (mut lead, mut fraction) = (u64::from(bits >> 52 != 0), bits & ((1 << 52) - 1));
    let exponent = match bits >> 52 {
        0 if fraction == 0 => 0,
        0 => -1022,
        biased => biased as i64 - 1023,
    };
    let kept = precision.unwrap_or(FRACTION_DIGITS).min(FRACTION_DIGITS);
    let dropped = 4 * (FRACTION_DIGITS - kept) as u32;
    if dropped > 0 {
        let whole = lead << 52 | fraction;
        let half = 1u64 << (dropped - 1);
        let below = whole & ((1 << dropped) - 1);
        let up = below > half || (below == half && whole >> dropped & 1 != 0);
        let rounded = ((whole >> dropped) + u64::from(up)) << dropped;
        (lead, fraction) = (rounded >> 52, rounded & ((1 << 52) - 1));
    }
    let all = format!("{fraction:013x}");
    let shown = match precision {
        Some(precision) => format!("{:0<precision$}", &all[..kept]),
        None => all.trim_end_matches('0').to_owned(),
    };
    let dot = if shown.is_empty() && !point { "" } else { "." };
    format!("0x{lead}{dot}{shown}p{exponent:+}")
}

#[cfg(test)]
mod tests {
    use super::*;

    struct List(Vec<u64>);

    impl Arguments for List {
        fn next(&mut self, _: u32) -> u64 {
            if self.0.is_empty() { 0 } else { self.0.remove(0) }
        }

        fn string(&mut self, _: u64) -> Vec<u8> {
            b"kiln".to_vec()
        }
    }

    fn print(text: &str, arguments: &[u64]) -> String {
        let mut out = Vec::new();
        format(text.as_bytes(), &mut List(arguments.to_vec()), &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn integers() {
        assert_eq!(print("%d|%5d|%-5d|%05d|%+d", &[7, 7, 7, 7, 7]), "7|    7|7    |00007|+7");
        assert_eq!(print("%d %lld %u", &[0xffff_ffff, u64::MAX, 0xffff_ffff]), "-1 -1 4294967295");
        assert_eq!(print("%x %#X %o %.4d %hhd", &[255, 255, 8, 3, 0x1ff]), "ff 0XFF 10 0003 -1");
        assert_eq!(print("%*d|%-*d|", &[4, 1, 4, 2]), "   1|2   |");
    }

    #[test]
    fn floats() {
        let f = |x: f64| x.to_bits();
        assert_eq!(print("%f %.2f %8.3f|", &[f(1.5), f(2.675), f(-3.0)]), "1.500000 2.67   -3.000|");
        assert_eq!(print("%e %.0e %E", &[f(12345.678), f(2.5), f(0.0)]), "1.234568e+04 2e+00 0.000000E+00");
        assert_eq!(
            print("%g %g %g %g", &[f(0.0001), f(1e-5), f(123456.0), f(1e6)]),
            "0.0001 1e-05 123456 1e+06"
        );
        assert_eq!(print("%a %.1a %a", &[f(1.0), f(1.97), f(0.0)]), "0x1p+0 0x2.0p+0 0x0p+0");
        assert_eq!(
            print("%f %5g %F", &[f(f64::NAN), f(f64::INFINITY), f(f64::NEG_INFINITY)]),
            "nan   inf -INF"
        );
        assert_eq!(print("%08.3f", &[f(-1.5)]), "-001.500");
    }

    #[test]
    fn texts_and_oddities() {
        assert_eq!(print("%s|%6s|%-6s|%.2s", &[1, 1, 1, 1]), "kiln|  kiln|kiln  |ki");
        assert_eq!(print("%c%c 100%% %p", &[b'o'.into(), b'k'.into(), 0xbeef]), "ok 100% 0xbeef");
        assert_eq!(print("end %", &[]), "end ");
        assert_eq!(print("%q", &[1]), "%q");
    }
}
