//! The proxy outside: programs in the sandbox reach hosts through it, and nothing else.
//!
//! ```text
//! inside, a network of its own          outside, a thread of squad's
//! PROGRAM ─→ 127.0.0.1:3128  ═══════════→ proxy: listed? ─→ host
//!         ─→ 127.0.0.1:53    ═══════════→ an address for a name
//!         ─→ 127.77.*.*:443  ═══════════→ of which name? listed? ─→ host
//!         ─→ 127.0.0.1:PORT  ═══════════→ relay ─→ the same port of this machine
//! ```
//!
//! The process that becomes the program makes the listeners in its own network, and passes them out before it does. So
//! nothing of squad's runs inside, and without squad nothing is reached.

use std::collections::BTreeMap;
use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket as StdUdpSocket};
use std::os::fd::OwnedFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr as UnixAddress, UnixListener as StdUnixListener};
use std::sync::{Arc, Weak};
use std::time::Duration;

use http::header::{CONNECTION, HOST, HeaderName, HeaderValue, PROXY_AUTHORIZATION, TE, TRAILER, UPGRADE};
use http::uri::Authority;
use http::{Method, Request, Response, StatusCode, Uri};
use http_body_util::{Either, Empty, Full};
use hyper::body::{Bytes, Incoming};
use hyper::ext::ReasonPhrase;
use hyper::upgrade::OnUpgrade;
use hyper::{client, server};
use hyper_util::client::proxy::matcher::{Intercept, Matcher};
use hyper_util::rt::{TokioIo, TokioTimer};
use parking_lot::Mutex;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SocketType, recvmsg, sockopt};
use rustix::process::{PidfdFlags, getuid, pidfd_open};
use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, Interest, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream, UdpSocket, UnixListener, UnixStream, lookup_host};
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::Upstream;
use super::names::{LONGEST_MESSAGE, Names};
use super::network::{HANDED_OVER, MOST_LISTENERS};
use super::traffic::Traffic;
use crate::model::HostPort;

/// For a process to pass its listeners.
const HAND_OVER: Duration = Duration::from_secs(5);
/// For a host to accept a connection.
const CONNECT: Duration = Duration::from_secs(20);
/// For a client to say what it wants.
const REQUEST: Duration = Duration::from_secs(60);
/// The bytes of a request's head.
const MAX_HEAD: usize = 64 << 10;
/// Connections of a process at the same time. More wait.
const MOST_CONNECTIONS: usize = 256;

/// Serves until it is dropped.
#[derive(Debug)]
pub(super) struct Proxy {
    /// Of its abstract socket, which no other network has.
    name: String,
    shared: Arc<Shared>,
    /// A port outside that nobody inside reaches by itself.
    outside: SocketAddr,
    runtime: Handle,
    _stop: oneshot::Sender<()>,
}

#[derive(Debug)]
struct Shared {
    traffic: Mutex<BTreeMap<String, Weak<Traffic>>>,
    /// The user's own proxies.
    upstream: Matcher,
}

impl Proxy {
    /// # Errors
    ///
    /// To follow "the network `listed` cannot be had: ".
    pub(super) fn start(upstream: &Upstream) -> Result<Self, String> {
        let shared = Arc::new(Shared { traffic: Mutex::default(), upstream: matcher(upstream)? });
        let name = format!("squad-{}", crate::env::unique_id().simple());
        let failed = |error: io::Error| error.to_string();
        let address = UnixAddress::from_abstract_name(&name).map_err(failed)?;
        let listener = StdUnixListener::bind_addr(&address).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let canary = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(failed)?;
        canary.set_nonblocking(true).map_err(failed)?;
        let outside = canary.local_addr().map_err(failed)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
        let (stop, stopped) = oneshot::channel::<()>();
        let (handle, serving) = (runtime.handle().clone(), Arc::clone(&shared));
        let serve = move || {
            runtime.block_on(async {
                tokio::select! {
                    _ = stopped => {}
                    Err(error) = serve(listener, canary, serving) => tracing::warn!("the sandbox's proxy: {error}"),
                }
            });
            // A name may still be looked up.
            runtime.shutdown_background();
        };
        std::thread::Builder::new().name("proxy".to_owned()).spawn(serve).map_err(failed)?;
        Ok(Self { name, shared, outside, runtime: handle, _stop: stop })
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn outside(&self) -> SocketAddr {
        self.outside
    }

    /// Lets processes with the key of this reach what it allows.
    pub(super) fn register(&self, traffic: &Arc<Traffic>) {
        let mut known = self.shared.traffic.lock();
        known.retain(|_, traffic| traffic.strong_count() > 0);
        known.insert(traffic.key().to_owned(), Arc::downgrade(traffic));
    }

    /// Whether a place can be reached from here, within a time.
    pub(super) async fn reaches(&self, place: &HostPort, within: Duration) -> Result<(), String> {
        let (shared, place) = (Arc::clone(&self.shared), place.clone());
        let reached = self.runtime.spawn(async move {
            let reached = timeout(within, shared.tunnel(&place)).await;
            let reached = reached.unwrap_or_else(|_| Err(Fault::failed(format!("{place} does not answer"))));
            reached.map(drop).map_err(|fault| fault.reason)
        });
        reached.await.unwrap_or_else(|error| Err(error.to_string()))
    }
}

/// # Errors
///
/// A proxy of the user's speaks something else than HTTP.
fn matcher(Upstream { all, http, https, no }: &Upstream) -> Result<Matcher, String> {
    let matcher = Matcher::builder().all(all.clone()).http(http.clone()).https(https.clone()).no(no.clone()).build();
    let unset = Matcher::builder().all(all.clone()).http(http.clone()).https(https.clone()).build();
    for scheme in ["http", "https"] {
        let any = Uri::builder().scheme(scheme).authority("squad.invalid").path_and_query("/").build();
        let Some(found) = any.ok().and_then(|any| unset.intercept(&any)) else { continue };
        if found.uri().scheme_str() != Some("http") {
            return Err(format!("your proxy for {scheme} is none of `http://`"));
        }
    }
    Ok(matcher)
}

async fn serve(listener: StdUnixListener, canary: std::net::TcpListener, shared: Arc<Shared>) -> io::Result<()> {
    let (listener, canary) = (UnixListener::from_std(listener)?, TcpListener::from_std(canary)?);
    let mut processes = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let shared = Arc::clone(&shared);
                processes.spawn(async move {
                    if let Err(error) = process(accepted?.0, &shared).await {
                        tracing::debug!("a process in the sandbox: {error}");
                    }
                    io::Result::Ok(())
                });
            }
            accepted = canary.accept() => drop(accepted),
            Some(_) = processes.join_next() => {}
        }
    }
}

/// Takes over a process's listeners, and serves them until it ends.
async fn process(mut stream: UnixStream, shared: &Arc<Shared>) -> io::Result<()> {
    let peer = sockopt::socket_peercred(&stream)?;
    if peer.uid != getuid() {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    let process = watched(pidfd_open(peer.pid, PidfdFlags::empty())?)?;
    let received = timeout(HAND_OVER, stream.async_io(Interest::READABLE, || receive(&stream))).await??;
    let (key, listeners) = received;
    let traffic = shared.traffic.lock().get(&key).and_then(Weak::upgrade);
    let traffic = traffic.ok_or_else(|| io::Error::other("nobody knows its key"))?;
    let mut serving = JoinSet::new();
    let names = Arc::new(Mutex::new(Names::of(traffic.hosts())));
    for (number, listener) in listeners.into_iter().enumerate() {
        if sockopt::socket_type(&listener)? == SocketType::DGRAM {
            let socket = StdUdpSocket::from(listener);
            socket.set_nonblocking(true)?;
            serving.spawn(name(UdpSocket::from_std(socket)?, Arc::clone(&names)));
            continue;
        }
        let listener = std::net::TcpListener::from(listener);
        listener.set_nonblocking(true)?;
        let listener = TcpListener::from_std(listener)?;
        let (traffic, shared) = (Arc::clone(&traffic), Arc::clone(shared));
        if number == 0 {
            serving.spawn(accept(listener, move |stream| proxied(stream, Arc::clone(&traffic), Arc::clone(&shared))));
            continue;
        }
        let names = Arc::clone(&names);
        let carry = move |stream| carried(stream, Arc::clone(&names), Arc::clone(&traffic), Arc::clone(&shared));
        serving.spawn(accept(listener, carry));
    }
    stream.write_all(HANDED_OVER).await?;
    drop(stream);
    // It can be read when its process has ended.
    process.readable().await?.retain_ready();
    Ok(())
}

#[expect(unsafe_code, reason = "tokio has no other way to wait for such a descriptor")]
fn watched(process: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: it owns its descriptor, which stays the same.
    let registered = unsafe { AsyncFd::register_with_interest(process, Interest::READABLE) };
    Ok(registered?)
}

/// A process's key and its listeners.
fn receive(stream: &UnixStream) -> io::Result<(String, Vec<OwnedFd>)> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_LISTENERS))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut text = [0; 64];
    let message = recvmsg(stream, &mut [IoSliceMut::new(&mut text)], &mut control, RecvFlags::CMSG_CLOEXEC)?;
    let mut listeners = Vec::new();
    for part in control.drain() {
        if let RecvAncillaryMessage::ScmRights(passed) = part {
            listeners.extend(passed);
        }
    }
    let key = String::from_utf8_lossy(text.get(..message.bytes).unwrap_or_default()).into_owned();
    Ok((key, listeners))
}

async fn accept<F>(listener: TcpListener, serve: impl Fn(TcpStream) -> F)
where
    F: Future<Output = ()> + Send + 'static,
{
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept(), if connections.len() < MOST_CONNECTIONS => match accepted {
                Ok((stream, _)) => drop(connections.spawn(serve(stream))),
                // Too many files are open.
                Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

/// Answers programs that ask for the addresses of names.
async fn name(socket: UdpSocket, names: Arc<Mutex<Names>>) {
    let mut message = [0; LONGEST_MESSAGE];
    loop {
        // Whoever asked may be gone, which the next call says.
        let Ok((length, asker)) = socket.recv_from(&mut message).await else { continue };
        let answer = message.get(..length).and_then(|message| names.lock().answer(message));
        if let Some(answer) = answer {
            let _ = socket.send_to(&answer, asker).await;
        }
    }
}

/// Carries the bytes of a program that knows of no proxy: to the host whose name it looked up, or to the same port of this
/// machine. One that may not be reached is closed at once.
async fn carried(mut stream: TcpStream, names: Arc<Mutex<Names>>, traffic: Arc<Traffic>, shared: Arc<Shared>) {
    let Ok(address) = stream.local_addr() else { return };
    let named = names.lock().place(address);
    let Some(place) = named.or_else(|| traffic.passed_in(address.port())) else { return };
    if traffic.permit(&place).await.is_err() {
        return;
    }
    // The user's own proxies are for these.
    let opened = if matches!(place.port(), 80 | 443) { shared.tunnel(&place).await } else { direct(&place).await };
    let Ok(mut outside) = opened else { return };
    traffic.note_reached(&place);
    // Whoever ends it first ends it for both.
    let _ = copy_bidirectional(&mut stream, &mut outside).await;
}

trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

type AnyStream = Box<dyn Stream>;

/// Why a request is not carried out.
#[derive(Debug)]
struct Fault {
    status: StatusCode,
    reason: String,
}

impl Fault {
    fn new(status: StatusCode, reason: impl Into<String>) -> Self {
        Self { status, reason: reason.into() }
    }

    fn failed(reason: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_GATEWAY, reason)
    }
}

/// What becomes of a connection when its request is answered.
type Tunnel = Arc<Mutex<Option<(OnUpgrade, AnyStream)>>>;

type Body = Either<Full<Bytes>, Incoming>;

/// A connection's requests.
async fn proxied(stream: TcpStream, traffic: Arc<Traffic>, shared: Arc<Shared>) {
    let (tunnel, upstreams) = (Tunnel::default(), Arc::new(Mutex::new(JoinSet::new())));
    let service = hyper::service::service_fn(|request| {
        let (traffic, shared) = (Arc::clone(&traffic), Arc::clone(&shared));
        let (tunnel, upstreams) = (Arc::clone(&tunnel), Arc::clone(&upstreams));
        async move {
            let answered = match request.method() {
                &Method::CONNECT => connected(request, &traffic, &shared, &tunnel).await,
                _ => forwarded(request, &traffic, &shared, &upstreams).await,
            };
            Ok::<_, hyper::Error>(answered.unwrap_or_else(refusal))
        }
    });
    let served = server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(REQUEST)
        .max_buf_size(MAX_HEAD)
        .preserve_header_case(true)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades()
        .await;
    let opened = tunnel.lock().take();
    if let (Ok(()), Some((upgrade, mut outside))) = (served, opened)
        && let Ok(inside) = upgrade.await
    {
        // Whoever ends it first ends it for both.
        let _ = copy_bidirectional(&mut TokioIo::new(inside), &mut outside).await;
    }
}

fn refusal(Fault { status, reason }: Fault) -> Response<Body> {
    let mut response = Response::new(Either::Left(Full::new(Bytes::from(format!("squad: {reason}\n")))));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(http::header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    headers.insert(CONNECTION, HeaderValue::from_static("close"));
    // Most programs show nothing else of it.
    if let Ok(phrase) = ReasonPhrase::try_from(format!("squad: {reason}").into_bytes()) {
        response.extensions_mut().insert(phrase);
    }
    response
}

/// Where a request leads. Programs inside name hosts in one way only.
fn place(authority: Option<&Authority>, usual: Option<u16>) -> Result<HostPort, Fault> {
    let bad = |reason: &str| Fault::new(StatusCode::BAD_REQUEST, reason);
    let authority = authority.ok_or_else(|| bad("the request names no host"))?;
    if authority.as_str().contains('@') {
        return Err(bad("a name before the host is not understood"));
    }
    let reason = "that is no host with a port, or one that programs read differently";
    HostPort::of_authority(authority, usual).ok_or_else(|| bad(reason))
}

async fn permit(place: &HostPort, traffic: &Traffic) -> Result<(), Fault> {
    traffic.permit(place).await.map_err(|why| {
        let reason =
            format!("{place} is not reached from here: {why}; `sandbox.hosts` in the user's settings lists hosts");
        Fault::new(StatusCode::FORBIDDEN, reason)
    })
}

/// Opens a tunnel.
async fn connected(
    mut request: Request<Incoming>,
    traffic: &Traffic,
    shared: &Shared,
    tunnel: &Tunnel,
) -> Result<Response<Body>, Fault> {
    if request.uri().scheme().is_some() || request.uri().path_and_query().is_some() {
        return Err(Fault::new(StatusCode::BAD_REQUEST, "a tunnel leads to a host and its port"));
    }
    let place = place(request.uri().authority(), None)?;
    permit(&place, traffic).await?;
    let outside = shared.tunnel(&place).await?;
    traffic.note_reached(&place);
    *tunnel.lock() = Some((hyper::upgrade::on(&mut request), outside));
    Ok(Response::new(Either::Left(Full::default())))
}

/// Headers about the connection and not about the request.
const OF_CONNECTION: [HeaderName; 5] = [CONNECTION, PROXY_AUTHORIZATION, TE, TRAILER, UPGRADE];

/// Carries out a request in plain text.
async fn forwarded(
    mut request: Request<Incoming>,
    traffic: &Traffic,
    shared: &Shared,
    upstreams: &Mutex<JoinSet<()>>,
) -> Result<Response<Body>, Fault> {
    if request.uri().scheme_str() != Some("http") {
        let reason = "this is a proxy for `http://` and for tunnels";
        return Err(Fault::new(StatusCode::BAD_REQUEST, reason));
    }
    let place = place(request.uri().authority(), Some(80))?;
    permit(&place, traffic).await?;
    let named: Vec<HeaderName> = request
        .headers()
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|names| names.split(',').filter_map(|name| name.trim().parse().ok()))
        .collect();
    let of_proxies = ["proxy-connection", "keep-alive"].map(HeaderName::from_static);
    for name in named.iter().chain(&OF_CONNECTION).chain(&of_proxies) {
        request.headers_mut().remove(name);
    }
    // Servers go by this one, so it says what was allowed.
    let host = HeaderValue::from_str(&if place.port() == 80 { place.host().to_owned() } else { place.to_string() });
    request.headers_mut().insert(HOST, host.map_err(|error| Fault::failed(error.to_string()))?);
    let upstream = shared.upstream_of(&place, "http");
    let stream = match &upstream {
        Some(upstream) => {
            if let Some(login) = upstream.basic_auth() {
                request.headers_mut().insert(PROXY_AUTHORIZATION, login.clone());
            }
            connect(&proxy_of(upstream)?).await?
        }
        None => {
            let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
            let path = path.parse().map_err(|_| Fault::new(StatusCode::BAD_REQUEST, "that is no path"))?;
            *request.uri_mut() = path;
            connect(&place).await?
        }
    };
    let failed = |error: hyper::Error| Fault::failed(format!("{place}: {error}"));
    let (mut sender, connection) = client::conn::http1::Builder::new()
        .preserve_header_case(true)
        .handshake(TokioIo::new(stream))
        .await
        .map_err(failed)?;
    upstreams.lock().spawn(async move { drop(connection.await) });
    let response = sender.send_request(request).await.map_err(failed)?;
    traffic.note_reached(&place);
    Ok(response.map(Either::Right))
}

fn proxy_of(upstream: &Intercept) -> Result<HostPort, Fault> {
    HostPort::of_url(&upstream.uri().to_string()).ok_or_else(|| Fault::failed("your proxy's address cannot be read"))
}

impl Shared {
    /// The user's own proxy for a place.
    fn upstream_of(&self, place: &HostPort, scheme: &str) -> Option<Intercept> {
        let uri = Uri::builder().scheme(scheme).authority(place.to_string()).path_and_query("/").build().ok()?;
        self.upstream.intercept(&uri).filter(|_| !place.is_loopback())
    }

    /// A connection to a place, by the user's own proxy if there is one.
    async fn tunnel(&self, place: &HostPort) -> Result<AnyStream, Fault> {
        let Some(upstream) = self.upstream_of(place, "https") else {
            return direct(place).await;
        };
        let proxy = proxy_of(&upstream)?;
        let failed = |error: &dyn std::fmt::Display| Fault::failed(format!("your proxy {proxy}: {error}"));
        let stream = connect(&proxy).await?;
        let shaken = client::conn::http1::handshake(TokioIo::new(stream)).await;
        let (mut sender, connection) = shaken.map_err(|error| failed(&error))?;
        let mut request = Request::connect(place.to_string());
        if let Some(login) = upstream.basic_auth() {
            request = request.header(PROXY_AUTHORIZATION, login);
        }
        let request = request.header(HOST, place.to_string()).body(Empty::<Bytes>::new());
        let request = request.map_err(|error| failed(&error))?;
        // It ends with the tunnel's beginning, or with the sender.
        tokio::spawn(connection.with_upgrades());
        let response = sender.send_request(request).await.map_err(|error| failed(&error))?;
        if response.status() != StatusCode::OK {
            return Err(failed(&format!("it answers {}", response.status())));
        }
        let upgraded = hyper::upgrade::on(response).await.map_err(|error| failed(&error))?;
        Ok(Box::new(TokioIo::new(upgraded)))
    }
}

/// A name that somebody else decides about must not lead to this machine, or to the service that a cloud has at such an
/// address.
fn is_inner(address: &IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(address) => {
            address.is_loopback() || address.is_link_local() || address.is_unspecified() || address.is_multicast()
        }
        IpAddr::V6(address) => {
            address.is_loopback()
                || address.is_unicast_link_local()
                || address.is_unspecified()
                || address.is_multicast()
        }
    }
}

async fn direct(place: &HostPort) -> Result<AnyStream, Fault> {
    connect(place).await.map(|stream| Box::new(stream) as AnyStream)
}

async fn connect(place: &HostPort) -> Result<TcpStream, Fault> {
    let all = async {
        let name = place.host().trim_matches(['[', ']']);
        let found = lookup_host((name, place.port())).await;
        let found = found.map_err(|error| Fault::failed(format!("{place} cannot be found: {error}")))?;
        let is_free = |address: &SocketAddr| match place.address() {
            Some(_) => true,
            None if place.is_loopback() => address.ip().is_loopback(),
            None => !is_inner(&address.ip()),
        };
        let mut last = Fault::new(
            StatusCode::FORBIDDEN,
            format!("{place} is not reached from here: its name leads to this machine"),
        );
        for address in found.filter(is_free) {
            match TcpStream::connect(address).await {
                Ok(stream) => return Ok(stream),
                Err(error) => last = Fault::failed(format!("{place} cannot be reached: {error}")),
            }
        }
        Err(last)
    };
    timeout(CONNECT, all).await.unwrap_or_else(|_| Err(Fault::failed(format!("{place} does not answer"))))
}

#[cfg(test)]
#[path = "proxy_tests.rs"]
mod tests;
