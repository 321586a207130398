//! A topology from its text.

use std::str::FromStr;

use super::error::TopologyError;
use super::link_speed::LinkSpeed;
use super::{HostLink, MAX_RANKS, Topology};

type Result<T> = std::result::Result<T, TopologyError>;

const NVLINK: LinkSpeed = LinkSpeed { bytes_per_us: 450_000, latency_ns: 1_800 };
const PCIE: LinkSpeed = LinkSpeed { bytes_per_us: 55_000, latency_ns: 2_500 };
const NETWORK_LATENCY_NS: u64 = 5_000;

/// The most bytes in a microsecond: 1,000 TB/s.
const MAX_BYTES_PER_US: u64 = 1_000_000_000;
/// The longest latency: ten seconds.
const MAX_LATENCY_NS: u64 = 10_000_000_000;

impl FromStr for Topology {
    type Err = TopologyError;

    fn from_str(text: &str) -> Result<Self> {
        let mut reader = Reader { text, at: 0 };
        let ranks_per_host = reader.times("a number of devices")?.unwrap_or(1);
        let (host_link, usual) = match reader.word("`nvlink` or `pcie`")?.as_str() {
            "nvlink" => (HostLink::NvLink, NVLINK),
            "pcie" => (HostLink::Pcie, PCIE),
            _ => return Err(reader.back_to_word("`nvlink` or `pcie`")),
        };
        let link = match reader.takes("(") {
            true => {
                let link = reader.speed(usual.latency_ns, 1)?;
                reader.expect(")", "`)`")?;
                link
            }
            false => usual,
        };
        if reader.takes("per") {
            reader.expect("host", "`host`")?;
        }
        let single = Self { ranks_per_host, host_link, link, hosts: 1, network: None };
        if reader.is_at_end() {
            return single.with_hosts(1);
        }
        reader.expect(",", "`,` or the end")?;
        let hosts_at = {
            reader.rest();
            reader.at
        };
        let hosts = reader.count("the number of hosts")?;
        if !reader.takes("hosts") {
            reader.expect("host", "`hosts`")?;
        }
        if hosts == 1 && reader.is_at_end() {
            return single.with_hosts(1);
        }
        reader.expect("over", "`over`")?;
        let adapters = reader.times("a number of adapters")?.unwrap_or(1);
        let network = reader.speed(NETWORK_LATENCY_NS, u64::from(adapters))?;
        match reader.is_at_end() {
            true => {
                let topology = Self { network: Some(network), ..single }.with_hosts(hosts);
                topology.map_err(|error| match error {
                    TopologyError::TooManyRanks { ranks } => {
                        let given = ranks.to_string();
                        reader.range(
                            hosts_at,
                            "the number of ranks with so many hosts",
                            &given,
                            "1",
                            "1048576",
                        )
                    }
                    error => error,
                })
            }
            false => Err(reader.unexpected("the end")),
        }
    }
}

struct Reader<'t> {
    text: &'t str,
    /// The next byte.
    at: usize,
}

impl<'t> Reader<'t> {
    fn rest(&mut self) -> &'t str {
        let rest = self.text.get(self.at..).unwrap_or_default();
        self.at += rest.len() - rest.trim_start().len();
        self.text.get(self.at..).unwrap_or_default()
    }

    fn is_at_end(&mut self) -> bool {
        self.rest().is_empty()
    }

    fn column(&self, at: usize) -> usize {
        self.text.get(..at).unwrap_or(self.text).chars().count() + 1
    }

    fn unexpected(&mut self, expected: &'static str) -> TopologyError {
        let rest = self.rest();
        let end = rest
            .find([' ', ',', '(', ')'])
            .filter(|end| *end > 0)
            .or(rest.char_indices().nth(1).map(|(at, _)| at));
        let found = match rest.get(..end.unwrap_or(rest.len())) {
            Some(word) if !word.is_empty() => format!("`{}`", word.chars().take(40).collect::<String>()),
            _ => "the end".to_owned(),
        };
        TopologyError::Unexpected { column: self.column(self.at), found, expected }
    }

    /// Takes a word or a sign if it comes next; a word must end there.
    fn takes(&mut self, word: &str) -> bool {
        let rest = self.rest();
        let Some(after) =
            rest.get(..word.len()).filter(|next| next.eq_ignore_ascii_case(word)).and(rest.get(word.len()..))
        else {
            return false;
        };
        let is_word = word.chars().all(char::is_alphanumeric);
        if is_word && after.starts_with(char::is_alphanumeric) {
            return false;
        }
        self.at += word.len();
        true
    }

    fn expect(&mut self, word: &str, expected: &'static str) -> Result<()> {
        match self.takes(word) {
            true => Ok(()),
            false => Err(self.unexpected(expected)),
        }
    }

    fn letters(&mut self) -> &'t str {
        let rest = self.rest();
        let end = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
        rest.get(..end).unwrap_or_default()
    }

    /// A word in small letters.
    fn word(&mut self, expected: &'static str) -> Result<String> {
        let word = self.letters();
        if word.is_empty() {
            return Err(self.unexpected(expected));
        }
        self.at += word.len();
        Ok(word.to_ascii_lowercase())
    }

    /// The error for the word that was read last.
    fn back_to_word(&mut self, expected: &'static str) -> TopologyError {
        let before = self.text.get(..self.at).unwrap_or_default();
        self.at = before.rfind(|c: char| !c.is_ascii_alphabetic()).map_or(0, |at| at + 1);
        self.unexpected(expected)
    }

    /// `8x`, if a number comes next.
    fn times(&mut self, what: &'static str) -> Result<Option<u32>> {
        let rest = self.rest();
        let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let is_times = rest.get(end..).is_some_and(|after| after.trim_start().starts_with(['x', 'X', '×']));
        if end == 0 || !is_times {
            return Ok(None);
        }
        let count = self.count(what)?;
        let sign = self.rest().chars().next().map_or(0, char::len_utf8);
        self.at += sign;
        Ok(Some(count))
    }

    fn count(&mut self, what: &'static str) -> Result<u32> {
        let rest = self.rest();
        let (start, end) = (self.at, rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len()));
        let digits = rest.get(..end).unwrap_or_default();
        if digits.is_empty() {
            return Err(self.unexpected("a number"));
        }
        self.at += end;
        let count = digits.parse().ok().filter(|count| (1..=MAX_RANKS).contains(count));
        count.ok_or_else(|| self.range(start, what, digits, "1", "1048576"))
    }

    fn range(
        &self,
        start: usize,
        what: &'static str,
        given: &str,
        least: &'static str,
        most: &'static str,
    ) -> TopologyError {
        let given = given.chars().take(40).collect();
        TopologyError::Range { column: self.column(start), what, given, least, most }
    }

    /// A rate, and a latency behind a comma.
    fn speed(&mut self, usual_ns: u64, times: u64) -> Result<LinkSpeed> {
        let start = {
            self.rest();
            self.at
        };
        let (number, given) = self.number("a rate")?;
        let unit = self.unit();
        let per_us = match unit.as_str() {
            "kB/s" => 0.001,
            "MB/s" => 1.0,
            "GB/s" => 1_000.0,
            "TB/s" => 1_000_000.0,
            "kb/s" => 0.001 / 8.0,
            "Mb/s" => 1.0 / 8.0,
            "Gb/s" => 1_000.0 / 8.0,
            "Tb/s" => 1_000_000.0 / 8.0,
            _ => return Err(self.unexpected("a unit such as GB/s or Gb/s")),
        };
        self.at += unit.len();
        let rate = (number * per_us * times as f64).round();
        if !(1.0..=MAX_BYTES_PER_US as f64).contains(&rate) {
            return Err(self.range(start, "the rate", &format!("{given}{unit}"), "1MB/s", "1000TB/s"));
        }
        let latency_ns = match self.takes(",") {
            true => self.latency()?,
            false => usual_ns,
        };
        Ok(LinkSpeed { bytes_per_us: rate as u64, latency_ns })
    }

    fn latency(&mut self) -> Result<u64> {
        let start = {
            self.rest();
            self.at
        };
        let (number, given) = self.number("a latency")?;
        let unit = self.unit();
        let ns = match unit.as_str() {
            "ns" => 1.0,
            "us" | "µs" => 1_000.0,
            "ms" => 1_000_000.0,
            "s" => 1_000_000_000.0,
            _ => return Err(self.unexpected("a unit: ns, us, ms or s")),
        };
        self.at += unit.len();
        let latency = (number * ns).round();
        match (0.0..=MAX_LATENCY_NS as f64).contains(&latency) {
            true => Ok(latency as u64),
            false => Err(self.range(start, "the latency", &format!("{given}{unit}"), "0ns", "10s")),
        }
    }

    fn number(&mut self, expected: &'static str) -> Result<(f64, &'t str)> {
        let rest = self.rest();
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let digits = rest.get(..end).unwrap_or_default();
        match digits.parse::<f64>() {
            Ok(number) => {
                self.at += end;
                Ok((number, digits))
            }
            Err(_) => Err(self.unexpected(expected)),
        }
    }

    /// The letters and strokes that come next.
    fn unit(&mut self) -> String {
        let is_unit = |c: &char| c.is_alphabetic() || *c == '/';
        self.rest().chars().take_while(is_unit).collect()
    }
}
