//! The network of the sandbox, from its inside.

use std::collections::BTreeMap;
use std::io::{self, IoSlice, Read, Write};
use std::mem::MaybeUninit;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream, ToSocketAddrs, UdpSocket};
use std::os::fd::{AsFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr as UnixAddress, UnixStream};
use std::time::Duration;

use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};

use super::NetworkRules;
use super::names::{PORTS, RESOLVER};

/// What squad answers when it has taken the listeners.
pub(super) const HANDED_OVER: &[u8] = b"taken";
/// One for the proxy, one for names, one for each port by which hosts are reached, and two for each that is passed in. The
/// kernel passes 253 at a time.
pub(super) const MOST_LISTENERS: usize = 250;
/// Where programs find the proxy, unless that port is passed in.
const PORT: u16 = 3128;
/// For squad to take the listeners.
const PATIENCE: Duration = Duration::from_secs(10);

/// The way out to squad, which only the network outside has.
pub(super) fn reach_squad(rules: &NetworkRules) -> Result<UnixStream, String> {
    let connected = UnixAddress::from_abstract_name(&rules.socket).and_then(|name| UnixStream::connect_addr(&name));
    let stream = connected.map_err(|error| format!("squad's proxy is not reached: {error}"))?;
    stream.set_read_timeout(Some(PATIENCE)).map_err(|error| error.to_string())?;
    Ok(stream)
}

/// Makes listeners in this process's own network, and passes them out. Returns the proxy's port.
pub(super) fn hand_over(rules: &NetworkRules, mut squad: UnixStream) -> Result<u16, String> {
    bring_up().map_err(|error| format!("the network's loopback cannot be used: {error}"))?;
    let listen = |address: IpAddr, port| TcpListener::bind(SocketAddr::new(address, port));
    let (v4, v6) = (IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST));
    let failed = |error: io::Error| format!("no port can be used: {error}");
    let port = if rules.ports.contains(&PORT) { 0 } else { PORT };
    let proxy = listen(v4, port).map_err(failed)?;
    let port = proxy.local_addr().map_err(failed)?.port();
    let mut listeners: Vec<OwnedFd> = vec![proxy.into(), UdpSocket::bind(RESOLVER).map_err(failed)?.into()];
    for port in PORTS {
        listeners.push(listen(IpAddr::V4(Ipv4Addr::UNSPECIFIED), port).map_err(failed)?.into());
    }
    for (address, port) in &rules.named {
        listeners.push(listen(IpAddr::V4(*address), *port).map_err(failed)?.into());
    }
    for port in &rules.ports {
        if !PORTS.contains(port) {
            listeners.push(listen(v4, *port).map_err(failed)?.into());
        }
        // A system may have no IPv6.
        listeners.extend(listen(v6, *port).map(OwnedFd::from).ok());
    }
    let failed = |error: io::Error| format!("squad's proxy does not take the ports: {error}");
    let passed: Vec<_> = listeners.iter().map(AsFd::as_fd).collect();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_LISTENERS))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !control.push(SendAncillaryMessage::ScmRights(&passed)) {
        return Err("too many ports are listed".to_owned());
    }
    let sent = sendmsg(&squad, &[IoSlice::new(rules.key.as_bytes())], &mut control, SendFlags::NOSIGNAL);
    sent.map_err(|error| failed(error.into()))?;
    let mut answer = vec![0; HANDED_OVER.len()];
    squad.read_exact(&mut answer).map_err(failed)?;
    Ok(port)
}

#[expect(unsafe_code, reason = "rustix has no such ioctl")]
fn bring_up() -> io::Result<()> {
    let socket = rustix::net::socket(rustix::net::AddressFamily::INET, rustix::net::SocketType::DGRAM, None)?;
    // SAFETY: all of its fields may be zero.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(b"lo") {
        *to = libc::c_char::from_ne_bytes([*from]);
    }
    let up = libc::IFF_UP | libc::IFF_RUNNING;
    request.ifr_ifru.ifru_flags = libc::c_short::try_from(up).map_err(io::Error::other)?;
    let number = std::os::fd::AsRawFd::as_raw_fd(&socket);
    // SAFETY: the descriptor is open, and the kernel reads one structure of that kind.
    let result = unsafe { libc::ioctl(number, libc::SIOCSIFFLAGS, &raw const request) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Environment variables by which programs find the proxy. What is on the loopback inside is reached without it.
pub(super) fn variables(port: u16) -> BTreeMap<&'static str, String> {
    const PROXY: [&str; 12] = [
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "ALL_PROXY",
        "http_proxy",
        "https_proxy",
        "all_proxy",
        // These stand above what a file of the project or of the user says.
        "npm_config_proxy",
        "npm_config_https_proxy",
        "YARN_HTTP_PROXY",
        "YARN_HTTPS_PROXY",
        "CARGO_HTTP_PROXY",
        "PIP_PROXY",
    ];
    let proxy = format!("http://127.0.0.1:{port}");
    let mut all: BTreeMap<&str, String> = PROXY.into_iter().map(|name| (name, proxy.clone())).collect();
    for name in ["NO_PROXY", "no_proxy", "npm_config_noproxy"] {
        all.insert(name, "127.0.0.1,localhost,::1".to_owned());
    }
    // Without it, Node's own `fetch` asks for no proxy.
    all.insert("NODE_USE_ENV_PROXY", "1".to_owned());
    all
}

/// Inside: what becomes of a connection to a port outside, of requests for two tunnels, one to that port and one to a host
/// that nobody lists, and of a connection to that host which asks nobody. In one line, for squad.
pub(super) fn probe(outside: &str, proxy: u16) -> String {
    const WITHIN: Duration = Duration::from_secs(3);
    let direct = outside.parse().is_ok_and(|outside| TcpStream::connect_timeout(&outside, WITHIN).is_ok());
    let tunnel = |place: &str| -> io::Result<String> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, proxy));
        let mut stream = TcpStream::connect_timeout(&address, WITHIN)?;
        stream.set_read_timeout(Some(WITHIN))?;
        write!(stream, "CONNECT {place} HTTP/1.1\r\nHost: {place}\r\n\r\n")?;
        let mut answer = [0; 12];
        stream.read_exact(&mut answer)?;
        Ok(String::from_utf8_lossy(&answer).trim_start_matches("HTTP/1.1 ").to_owned())
    };
    let told = |place| tunnel(place).unwrap_or_else(|error| error.to_string());
    // It is accepted, and closed without a word.
    let closed = || -> io::Result<bool> {
        let address = UNLISTED.to_socket_addrs()?.next().ok_or(io::ErrorKind::NotFound)?;
        let mut stream = TcpStream::connect_timeout(&address, WITHIN)?;
        stream.set_read_timeout(Some(WITHIN))?;
        Ok(stream.read(&mut [0])? == 0)
    };
    let named = closed().map_or_else(|error| error.to_string(), |is_closed| is_closed.to_string());
    format!("{PROBED} {direct} {} {} {named}\n", told(outside), told(UNLISTED))
}

/// What [`probe`] says if all is as it should be: no connection past the proxy, one through it, and none to who knows whom,
/// by the proxy or by name.
pub(super) const PROBED_WELL: &str = "network: false 200 403 true";
const PROBED: &str = "network:";
const UNLISTED: &str = "unlisted.invalid:443";
