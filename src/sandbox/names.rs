//! Names of hosts as addresses, for programs that know of no proxy: inside, a name is an address of this machine's own,
//! and what connects to that address is for the host of that name.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use crate::model::{HostPattern, HostPort};

/// Where programs ask for the address of a name.
pub(super) const RESOLVER: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 53);
/// What `/etc/resolv.conf` says inside.
pub(super) const SETTINGS: &str = "# written by squad: it answers for names\nnameserver 127.0.0.1\n";
/// Ports on which a connection to any host is taken: those of SSH, HTTP and HTTPS. Nothing inside could listen there, as
/// nothing there has the right to.
pub(super) const PORTS: [u16; 3] = [22, 80, 443];
/// In seconds. A name keeps its address as long as the network is there.
const TIME_TO_LIVE: u32 = 60;
/// The longest message of the Domain Name System over UDP, in bytes, which nobody has to announce.
pub(super) const LONGEST_MESSAGE: usize = 512;

/// The names of one network, each with its address.
#[derive(Debug, Default)]
pub(super) struct Names {
    addresses: BTreeMap<String, Ipv4Addr>,
    names: BTreeMap<Ipv4Addr, String>,
}

impl Names {
    /// With the hosts of [`listed`] in its order, so that both sides of the sandbox know their addresses.
    pub(super) fn of(hosts: &[HostPattern]) -> Self {
        let mut names = Self::default();
        for place in listed(hosts) {
            names.address(place.host());
        }
        names
    }

    /// Where to listen for what [`listed`] names.
    pub(super) fn listened(hosts: &[HostPattern]) -> Vec<(Ipv4Addr, u16)> {
        let mut names = Self::of(hosts);
        listed(hosts).filter_map(|place| Some((names.address(place.host())?, place.port()))).collect()
    }

    /// The address that stands for a name. `None`: there are too many.
    fn address(&mut self, host: &str) -> Option<Ipv4Addr> {
        if let Some(known) = self.addresses.get(host) {
            return Some(*known);
        }
        // 127.77.0.1 and those that follow.
        let [high, low] = u16::try_from(self.names.len() + 1).ok()?.to_be_bytes();
        let address = Ipv4Addr::new(127, 77, high, low);
        self.addresses.insert(host.to_owned(), address);
        self.names.insert(address, host.to_owned());
        Some(address)
    }

    /// For which host and port a connection to an address is.
    pub(super) fn place(&self, address: SocketAddr) -> Option<HostPort> {
        let IpAddr::V4(ip) = address.ip().to_canonical() else { return None };
        HostPort::new(self.names.get(&ip)?, address.port())
    }

    /// The answer to a message of the Domain Name System. `None`: it is no question.
    pub(super) fn answer(&mut self, message: &[u8]) -> Option<Vec<u8>> {
        const RESPONSE: u8 = 0x80;
        const RECURSION: u8 = 0x80;
        const NO_ERROR: u8 = 0;
        const NO_SUCH_NAME: u8 = 3;
        const NOT_IMPLEMENTED: u8 = 4;
        let (id, flags) = (message.get(..2)?, message.get(2..4)?);
        let [first, _] = flags else { return None };
        if first & RESPONSE != 0 || message.get(4..6)? != [0, 1] {
            return None;
        }
        let (name, end) = name_at(message, HEADER)?;
        let question = message.get(HEADER..end + 4)?;
        let (kind, class) = (message.get(end..end + 2)?, message.get(end + 2..end + 4)?);
        let place = HostPort::new(&name, 1).filter(|place| place.address().is_none());
        let (code, address) = match place {
            // Another operation than a query.
            _ if first & 0x78 != 0 => (NOT_IMPLEMENTED, None),
            None => (NO_SUCH_NAME, None),
            Some(_) if (kind, class) != (&A, &INTERNET) => (NO_ERROR, None),
            Some(place) if place.is_loopback() => (NO_ERROR, Some(Ipv4Addr::LOCALHOST)),
            Some(place) => (NO_ERROR, self.address(place.host())),
        };
        let mut answer = id.to_vec();
        answer.extend([RESPONSE | (first & 0x79), RECURSION | code, 0, 1, 0, u8::from(address.is_some()), 0, 0, 0, 0]);
        answer.extend(question);
        if let Some(address) = address {
            let [high, low] = u16::try_from(HEADER).ok()?.to_be_bytes();
            answer.extend([0xc0 | high, low]);
            answer.extend(A.into_iter().chain(INTERNET).chain(TIME_TO_LIVE.to_be_bytes()).chain([0, 4]));
            answer.extend(address.octets());
        }
        Some(answer)
    }
}

/// The bytes before the question.
const HEADER: usize = 12;
/// Of a record, an address with four bytes.
const A: [u8; 2] = [0, 1];
const INTERNET: [u8; 2] = [0, 1];

/// The name at a place in a message, and where it ends. A question has all of it.
fn name_at(message: &[u8], mut at: usize) -> Option<(String, usize)> {
    let mut name = String::new();
    loop {
        let length = usize::from(*message.get(at)?);
        at += 1;
        match length {
            0 => return Some((name, at)),
            1..64 => {
                let label = std::str::from_utf8(message.get(at..at + length)?).ok()?;
                // It would be read as two.
                if label.contains('.') {
                    return None;
                }
                name += if name.is_empty() { "" } else { "." };
                name += label;
                at += length;
            }
            _ => return None,
        }
    }
}

/// The places that a list names by a port which is taken for no other host.
fn listed(hosts: &[HostPattern]) -> impl Iterator<Item = HostPort> {
    let named = hosts.iter().filter(|pattern| pattern.passed_in().is_none()).filter_map(HostPattern::place);
    named.filter(|place| place.address().is_none() && !PORTS.contains(&place.port()))
}

/// What `/etc/hosts` says inside: an address of this machine's own is the same there, and others are not reached.
pub(super) fn hosts_inside(outside: &str) -> String {
    let is_own = |line: &&str| {
        let first = line.split_whitespace().next().and_then(|first| first.parse::<IpAddr>().ok());
        first.is_some_and(|address| address.is_loopback())
    };
    outside.lines().filter(is_own).map(|line| format!("{line}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(name: &str, kind: u16) -> Vec<u8> {
        let mut message = vec![7, 9, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
        for label in name.split('.').filter(|label| !label.is_empty()) {
            message.push(u8::try_from(label.len()).expect("a short one"));
            message.extend(label.as_bytes());
        }
        message.push(0);
        message.extend(kind.to_be_bytes().into_iter().chain(INTERNET));
        message
    }

    fn hosts(list: &[&str]) -> Vec<HostPattern> {
        list.iter().map(|text| HostPattern::parse(text).expect(text)).collect()
    }

    /// Name × kind of record: the code, and the last four bytes where there is an answer.
    #[test]
    fn a_name_has_one_address_for_ever() {
        const TEXT: u16 = 16;
        const SIX: u16 = 28;
        let mut names = Names::default();
        for (name, kind, code, address) in [
            ("one.example", 1, 0, Some([127, 77, 0, 1])),
            ("two.example", 1, 0, Some([127, 77, 0, 2])),
            ("ONE.Example", 1, 0, Some([127, 77, 0, 1])),
            ("one.example", SIX, 0, None),
            ("three.example", SIX, 0, None),
            ("one.example", TEXT, 0, None),
            ("single", 1, 0, Some([127, 77, 0, 3])),
            ("a_b.example", 1, 0, Some([127, 77, 0, 4])),
            ("localhost", 1, 0, Some([127, 0, 0, 1])),
            ("db.localhost", 1, 0, Some([127, 0, 0, 1])),
            ("1.0.0.127.in-addr.arpa", 1, 0, Some([127, 77, 0, 5])),
            ("10.0.0.1", 1, 3, None),
            ("127.1", 1, 3, None),
            ("a b.example", 1, 3, None),
            ("\u{1b}[2J.example", 1, 3, None),
            ("b\u{fc}cher.example", 1, 3, None),
            ("", 1, 3, None),
        ] {
            let asked = message(name, kind);
            let answer = names.answer(&asked).expect("an answer");
            assert_eq!((&answer[..2], answer[2], answer[3] & 15), (&asked[..2], 0x81, code), "{name:?}");
            assert_eq!(answer[12..asked.len()], asked[12..], "{name:?}");
            let found = (answer[7] == 1).then(|| answer[answer.len() - 4..].to_vec());
            assert_eq!(found, address.map(|address| address.to_vec()), "{name:?}");
        }
        let place = names.place(SocketAddr::from(([127, 77, 0, 2], 22)));
        assert_eq!(place.expect("known").to_string(), "two.example:22");
        assert_eq!(names.place(SocketAddr::from(([127, 77, 0, 99], 22))), None);
        assert_eq!(names.place(SocketAddr::from(([127, 0, 0, 1], 22))), None);
    }

    #[test]
    fn what_is_no_question_has_no_answer() {
        let whole = message("one.example", 1);
        for length in 0..whole.len() {
            assert_eq!(Names::default().answer(&whole[..length]), None, "{length}");
        }
        let with = |at: usize, byte: u8| {
            let mut changed = whole.clone();
            changed[at] = byte;
            changed
        };
        // A response, two questions, a name that points, one with a dot in a label, and one that is no text.
        for (at, byte) in [(2, 0x81), (5, 2), (5, 0), (12, 0xc0), (12, 0x40), (14, b'.'), (14, 0xff)] {
            assert_eq!(Names::default().answer(&with(at, byte)), None, "{at}: {byte}");
        }
        let update = Names::default().answer(&with(2, 0x28)).expect("an answer");
        assert_eq!((update[3] & 15, update[7]), (4, 0));
        // What follows the question is not looked at.
        let mut more = whole.clone();
        more.extend([0, 0, 41, 4, 208, 0, 0, 0, 0, 0, 0]);
        assert_eq!(Names::default().answer(&more), Names::default().answer(&whole));
    }

    /// Programs may ask for any number.
    #[test]
    fn there_are_no_more_names_than_addresses() {
        let mut names = Names::default();
        for number in 0..70_000 {
            names.address(&format!("n{number}.example"));
        }
        assert_eq!(names.names.len(), 65_535);
        let answer = names.answer(&message("more.example", 1)).expect("an answer");
        assert_eq!((answer[3] & 15, answer[7]), (0, 0));
    }

    #[test]
    fn listed_ports_have_addresses_of_their_own() {
        let list = hosts(&[
            "a.example",
            "a.example:443",
            "a.example:22",
            "db.example:5432",
            "db.example:5433",
            "git.example:9418",
            "*.all.example:5432",
            "any.example:*",
            "10.0.0.1:5432",
            "localhost:5432",
        ]);
        let (db, git) = (Ipv4Addr::new(127, 77, 0, 1), Ipv4Addr::new(127, 77, 0, 2));
        assert_eq!(Names::listened(&list), [(db, 5432), (db, 5433), (git, 9418)]);
        let answer = Names::of(&list).answer(&message("git.example", 1)).expect("an answer");
        assert_eq!(answer[answer.len() - 4..], git.octets());
    }

    #[test]
    fn only_own_addresses_are_known_inside() {
        let outside = "127.0.0.1\tlocalhost\n# 10.0.0.1 x\n10.0.0.1 db.example\n::1 localhost\n127.0.1.1 me\n\nx y\n";
        assert_eq!(hosts_inside(outside), "127.0.0.1\tlocalhost\n::1 localhost\n127.0.1.1 me\n");
    }
}
