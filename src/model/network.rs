//! The hosts that a sandbox lets programs reach.

use std::collections::BTreeSet;
use std::fmt;
use std::net::IpAddr;

use http::Uri;
use http::uri::Authority;
use serde::{Deserialize, Serialize};

use super::host_name;

/// What of the network programs reach at level `full`, strictest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum NetworkAccess {
    /// Listed hosts, and those that a person allows.
    Listed,
    Open,
}

impl NetworkAccess {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Listed => "listed",
            Self::Open => "open",
        }
    }

    pub(crate) fn parse(name: &str) -> Option<Self> {
        [Self::Listed, Self::Open].into_iter().find(|access| access.name() == name)
    }
}

impl fmt::Display for NetworkAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The hosts that an agent's programs reached, and those that were refused them, each with its port.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct ReachedHosts {
    pub(crate) reached: BTreeSet<String>,
    pub(crate) refused: BTreeSet<String>,
}

impl ReachedHosts {
    pub(crate) fn is_empty(&self) -> bool {
        self.reached.is_empty() && self.refused.is_empty()
    }
}

/// A port of a host.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct HostPort {
    /// As [`host_name()`] writes it.
    host: String,
    port: u16,
}

impl HostPort {
    /// `None`: programs read the name differently, or it is none.
    pub(crate) fn new(host: &str, port: u16) -> Option<Self> {
        host_name(host).filter(|_| port > 0).map(|host| Self { host, port })
    }

    /// Where an address that begins with `http://` or `https://` leads.
    pub(crate) fn of_url(url: &str) -> Option<Self> {
        let url: Uri = url.trim().parse().ok()?;
        let usual = match url.scheme_str()? {
            "http" | "ws" => 80,
            "https" | "wss" => 443,
            _ => return None,
        };
        Self::of_authority(url.authority()?, Some(usual))
    }

    /// `usual`: the port if none is named.
    pub(crate) fn of_authority(authority: &Authority, usual: Option<u16>) -> Option<Self> {
        let place = authority.as_str().rsplit('@').next()?;
        let port = match place.strip_prefix(authority.host())?.strip_prefix(':') {
            Some(port) if port.bytes().all(|byte| byte.is_ascii_digit()) => port.parse().ok()?,
            Some(_) => return None,
            None => usual?,
        };
        Self::new(authority.host(), port)
    }

    pub(crate) fn host(&self) -> &str {
        &self.host
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// The host's address, if its name is one.
    pub(crate) fn address(&self) -> Option<IpAddr> {
        self.host.trim_matches(['[', ']']).parse().ok()
    }

    /// Whether it is this machine's own.
    pub(crate) fn is_loopback(&self) -> bool {
        self.host == "localhost"
            || self.host.ends_with(".localhost")
            || self.address().is_some_and(|address| address.is_loopback())
    }
}

impl fmt::Display for HostPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

/// An entry of a list of hosts: `HOST`, `HOST:PORT` or `HOST:*`, where `*.NAME` is each host below NAME.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HostPattern {
    /// Stands for all hosts below [`Self::host`].
    is_below: bool,
    host: String,
    ports: Ports,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ports {
    /// Those of `http` and `https`.
    Usual,
    One(u16),
    All,
}

impl HostPattern {
    /// # Errors
    ///
    /// Why it is no entry, to follow its text.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let example = "write it like `example.com`, `*.example.com` or `db.example.com:5432`";
        if text.contains('/') {
            return Err(format!("is no host; {example}"));
        }
        if !text.is_ascii() {
            return Err("has letters beyond ASCII; write it as it is looked up, which begins with `xn--`".to_owned());
        }
        let (name, ports) = match text.rsplit_once(':').filter(|(_, port)| !port.ends_with(']')) {
            Some((name, "*")) => (name, Ports::All),
            Some((name, port)) => {
                let digits = port.bytes().all(|byte| byte.is_ascii_digit());
                let port = port.parse().ok().filter(|port| digits && *port > 0);
                (name, Ports::One(port.ok_or_else(|| format!("has no port from 1 to 65535; {example}"))?))
            }
            None => (text, Ports::Usual),
        };
        let below = name.strip_prefix("*.");
        let host = host_name(below.unwrap_or(name));
        let host = host.filter(|host| below.is_none() || HostPort { host: host.clone(), port: 1 }.address().is_none());
        let host = host.ok_or_else(|| match name {
            "*" => "stands for every host; `sandbox.network = \"open\"` lets all be reached".to_owned(),
            _ => format!("is no host; {example}"),
        })?;
        let pattern = Self { is_below: below.is_some(), host, ports };
        if pattern.is_loopback() && !matches!(ports, Ports::One(_)) {
            return Err("is this machine and needs a port, like `localhost:5432`".to_owned());
        }
        Ok(pattern)
    }

    fn is_loopback(&self) -> bool {
        HostPort { host: self.host.clone(), port: 1 }.is_loopback()
    }

    /// The one place that it names on this machine, which is reached there by its own port.
    pub(crate) fn passed_in(&self) -> Option<HostPort> {
        match self.ports {
            Ports::One(port) if self.is_loopback() => Some(HostPort { host: self.host.clone(), port }),
            _ => None,
        }
    }

    /// The one place that it names, by the port of `https` if it names none.
    pub(crate) fn place(&self) -> Option<HostPort> {
        let port = match self.ports {
            Ports::Usual => 443,
            Ports::One(port) => port,
            Ports::All => return None,
        };
        (!self.is_below).then(|| HostPort { host: self.host.clone(), port })
    }

    /// Whether it is about each place that another entry is about.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        let is_below = other.host.strip_suffix(&*self.host).is_some_and(|rest| rest.len() > 1 && rest.ends_with('.'));
        let is_host = match (self.is_below, other.is_below) {
            (false, below) => !below && other.host == self.host,
            (true, false) => is_below,
            (true, true) => is_below || other.host == self.host,
        };
        let is_port = match (self.ports, other.ports) {
            (Ports::All, _) | (Ports::Usual, Ports::Usual) => true,
            (Ports::Usual, Ports::One(port)) => matches!(port, 80 | 443),
            (Ports::One(own), Ports::One(port)) => own == port,
            _ => false,
        };
        is_host && is_port
    }

    pub(crate) fn is(&self, place: &HostPort) -> bool {
        let is_host = match self.is_below {
            true => place.host.strip_suffix(&*self.host).is_some_and(|rest| rest.len() > 1 && rest.ends_with('.')),
            false => place.host == self.host,
        };
        let is_port = match self.ports {
            Ports::Usual => matches!(place.port, 80 | 443),
            Ports::One(port) => place.port == port,
            Ports::All => true,
        };
        is_host && is_port
    }
}

impl From<HostPort> for HostPattern {
    fn from(HostPort { host, port }: HostPort) -> Self {
        Self { is_below: false, host, ports: Ports::One(port) }
    }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", if self.is_below { "*." } else { "" }, self.host)?;
        match self.ports {
            Ports::Usual => Ok(()),
            Ports::One(port) => write!(f, ":{port}"),
            Ports::All => f.write_str(":*"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(text: &str) -> HostPort {
        let (host, port) = text.rsplit_once(':').expect("a port");
        HostPort::new(host, port.parse().expect("a number")).expect(text)
    }

    #[test]
    fn an_entry_is_about_these_places() {
        for (pattern, reached, refused) in [
            (
                "example.com",
                &["example.com:443", "example.com:80", "EXAMPLE.com:443", "example.com.:443"][..],
                &[
                    "example.com:22",
                    "a.example.com:443",
                    "badexample.com:443",
                    "example.com.evil.org:443",
                    "example.co:443",
                ][..],
            ),
            ("Example.COM.", &["example.com:443"], &["example.org:443"]),
            (
                "*.example.com",
                &["a.example.com:443", "a.b.Example.com:80", "a.example.com.:443"],
                &["example.com:443", "aexample.com:443", "a.example.com:8443", "a.example.com.evil.org:443"],
            ),
            ("example.com:8443", &["example.com:8443"], &["example.com:443", "a.example.com:8443"]),
            ("*.example.com:8443", &["a.example.com:8443"], &["a.example.com:443"]),
            ("example.com:*", &["example.com:22", "example.com:443"], &["a.example.com:22"]),
            ("10.0.0.1", &["10.0.0.1:443"], &["10.0.0.1:5432", "10.0.0.11:443", "110.0.0.1:443"]),
            ("10.0.0.1:5432", &["10.0.0.1:5432"], &["10.0.0.1:443"]),
            ("[2001:db8:0::1]:443", &["[2001:db8::1]:443"], &["[2001:db8::2]:443"]),
            ("[::ffff:10.0.0.1]", &["10.0.0.1:443"], &["[::1]:443"]),
            ("xn--bcher-kva.example", &["XN--bcher-kva.example:443"], &["bucher.example:443"]),
            ("localhost:5432", &["localhost:5432", "LocalHost:5432"], &["localhost:5433", "127.0.0.1:5432"]),
            ("a_b.example", &["a_b.example:443"], &["ab.example:443"]),
        ] {
            let read = HostPattern::parse(pattern).expect(pattern);
            for reached in reached {
                assert!(read.is(&place(reached)), "{pattern}: {reached}");
            }
            for refused in refused {
                assert!(!read.is(&place(refused)), "{pattern}: {refused}");
            }
        }
    }

    /// Each of these with each: what one covers, it is about, wherever that is.
    #[test]
    fn an_entry_covers_others() {
        let all = [
            "example.com",
            "example.com:443",
            "example.com:8443",
            "example.com:*",
            "*.example.com",
            "*.example.com:8443",
            "*.example.com:*",
            "*.a.example.com",
            "a.example.com",
            "a.example.com:8443",
            "badexample.com",
            "10.0.0.1:443",
        ];
        let all = all.map(|text| HostPattern::parse(text).expect(text));
        let places = ["example.com", "a.example.com", "b.a.example.com", "badexample.com", "10.0.0.1"];
        let places = places.iter().flat_map(|host| [80, 443, 8443, 22].map(|port| place(&format!("{host}:{port}"))));
        let places: Vec<HostPort> = places.collect();
        for one in &all {
            for other in &all {
                let is_about_all = places.iter().all(|place| !other.is(place) || one.is(place));
                assert_eq!(one.covers(other), is_about_all, "{one} and {other}");
            }
        }
    }

    #[test]
    fn what_is_no_entry_says_why() {
        for (text, reason) in [
            ("", "is no host"),
            ("*", "stands for every host"),
            ("*.", "is no host"),
            ("*:443", "stands for every host"),
            ("a*.example.com", "is no host"),
            ("*.*.example.com", "is no host"),
            ("*.10.0.0.1", "is no host"),
            ("https://example.com", "is no host"),
            ("example.com/a", "is no host"),
            ("10.0.0.0/8", "is no host"),
            ("bücher.example", "xn--"),
            ("example.com:", "no port"),
            ("example.com:0", "no port"),
            ("example.com:65536", "no port"),
            ("example.com:+1", "no port"),
            ("example.com:http", "no port"),
            ("127.1", "is no host"),
            ("0x7f000001", "is no host"),
            ("2130706433", "is no host"),
            ("example..com", "is no host"),
            ("user@example.com", "is no host"),
            ("a b", "is no host"),
            ("a\u{1b}[2J.com", "is no host"),
            ("localhost", "needs a port"),
            ("127.0.0.2:*", "needs a port"),
            ("[::1]", "needs a port"),
            ("*.localhost", "needs a port"),
        ] {
            let read = HostPattern::parse(text).expect_err(text);
            assert!(read.contains(reason), "{text}: {read}");
        }
    }

    #[test]
    fn an_entry_reads_back_as_it_is_written() {
        for text in ["example.com", "*.example.com", "example.com:1", "*.example.com:*", "[2001:db8::1]:2", "10.0.0.1"]
        {
            assert_eq!(HostPattern::parse(text).expect(text).to_string(), text);
        }
    }

    #[test]
    fn places_of_this_machine_are_passed_in() {
        for (text, passed) in [
            ("localhost:1", Some("localhost:1")),
            ("127.0.0.1:2", Some("127.0.0.1:2")),
            ("127.9.9.9:2", Some("127.9.9.9:2")),
            ("[::1]:3", Some("[::1]:3")),
            ("[::ffff:127.0.0.1]:3", Some("127.0.0.1:3")),
            ("example.com:1", None),
            ("10.0.0.1:1", None),
        ] {
            let passed_in = HostPattern::parse(text).expect(text).passed_in();
            assert_eq!(passed_in.map(|place| place.to_string()).as_deref(), passed, "{text}");
        }
    }

    #[test]
    fn an_address_leads_to_a_place() {
        for (url, led) in [
            ("https://api.example.com/v1", Some("api.example.com:443")),
            ("http://127.0.0.1:8080/v1", Some("127.0.0.1:8080")),
            ("HTTPS://Example.com", Some("example.com:443")),
            ("https://user:word@host.example:1?x=/", Some("host.example:1")),
            ("http://[0:0::1]:9", Some("[::1]:9")),
            ("http://127.1", None),
            ("ftp://host", None),
            ("localhost:8080", None),
            ("/a", None),
            ("https://host:99999", None),
            ("https://host:0", None),
            ("", None),
        ] {
            assert_eq!(HostPort::of_url(url).map(|place| place.to_string()).as_deref(), led, "{url}");
        }
    }
}
