use tokio::io::AsyncReadExt;

use super::*;
use crate::model::HostPattern;

/// A host that answers each connection with what it was sent until an empty line, and closes.
async fn echo(status: &'static str) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let head = head(&mut stream).await;
                let answer =
                    format!("HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{head}", head.len());
                let _ = stream.write_all(answer.as_bytes()).await;
            });
        }
    });
    port
}

async fn head(stream: &mut TcpStream) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read_u8().await {
            Ok(byte) => head.push(byte),
            Err(_) => break,
        }
    }
    String::from_utf8_lossy(&head).into_owned()
}

fn shared(upstream: &Upstream) -> Arc<Shared> {
    Arc::new(Shared { traffic: Mutex::default(), upstream: matcher(upstream).expect("a proxy") })
}

/// A connection to the proxy.
async fn client(hosts: &[String], shared: Arc<Shared>) -> (TcpStream, Arc<Traffic>) {
    let hosts = hosts.iter().map(|host| HostPattern::parse(host).expect(host)).collect();
    let traffic = Arc::new(Traffic::new(hosts, false));
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let served = Arc::clone(&traffic);
    tokio::spawn(accept(listener, move |stream| proxied(stream, Arc::clone(&served), Arc::clone(&shared))));
    (TcpStream::connect(address).await.expect("a connection"), traffic)
}

/// All that comes back for what is sent.
async fn told(hosts: &[String], upstream: &Upstream, request: &str) -> (String, Arc<Traffic>) {
    let (mut stream, traffic) = client(hosts, shared(upstream)).await;
    stream.write_all(request.as_bytes()).await.expect("written");
    let mut answer = Vec::new();
    // It may be closed before all was read.
    let _ = timeout(Duration::from_secs(20), stream.read_to_end(&mut answer)).await.expect("an end");
    (String::from_utf8_lossy(&answer).into_owned(), traffic)
}

#[tokio::test]
async fn each_request_is_understood_in_one_way_or_refused() {
    let port = echo("200 OK").await;
    let hosts = [format!("localhost:{port}")];
    let long = format!("GET http://localhost:{port}/ HTTP/1.1\r\nA: {}\r\n\r\n", "a".repeat(MAX_HEAD * 2));
    let get = |target: &str| format!("GET {target} HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n");
    let connect = |target: &str| format!("CONNECT {target} HTTP/1.1\r\nHost: evil.example\r\n\r\n");
    for (request, status) in [
        (get(&format!("http://localhost:{port}/a?b")), "200 "),
        (get(&format!("HTTP://LOCALHOST:{port}")), "200 "),
        (get("http://localhost/"), "403 "),
        (get(&format!("http://localhost:{}/", port - 1)), "403 "),
        (get(&format!("http://127.0.0.1:{port}/")), "403 "),
        (get("http://bad.example/"), "403 "),
        (get("http://bad.example:22/"), "403 "),
        (get("/a"), "400 "),
        (get("*"), "400 "),
        (get(&format!("https://localhost:{port}/")), "400 "),
        (get(&format!("ftp://localhost:{port}/")), "400 "),
        (get(&format!("http://user@localhost:{port}/")), "400 "),
        (get("http://127.1/"), "400 "),
        (get("http://0x7f000001/"), "400 "),
        (get("http://2130706433/"), "400 "),
        (get("http://b\u{fc}cher.example/"), "400 "),
        (get("http://a b/"), "400 "),
        (connect("bad.example:443"), "403 "),
        (connect("BAD.example.:443"), "403 "),
        (connect("[2001:db8::1]:443"), "403 "),
        (connect("169.254.169.254:80"), "403 "),
        (connect("localhost"), "400 "),
        (connect("localhost:"), "400 "),
        (connect("localhost:0"), "400 "),
        (connect("localhost:65536"), "400 "),
        (connect(&format!("user@localhost:{port}")), "400 "),
        (connect("127.1:443"), "400 "),
        (connect("[::1:443"), "400 "),
        (connect(&format!("http://localhost:{port}/")), "4"),
        ("NONSENSE\r\n\r\n".to_owned(), "400 "),
        ("\x16\x03\x01\x02\x00\x01".to_owned() + "\r\n\r\n", "400 "),
        (long, "431 "),
    ] {
        let (answer, traffic) = told(&hosts, &Upstream::default(), &request).await;
        let shown = request.lines().next().unwrap_or_default();
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{shown}: {answer}");
        let seen = traffic.seen_since(0);
        assert_eq!(
            (seen.reached.len(), seen.refused.len()),
            match status {
                "200 " => (1, 0),
                "403 " => (0, 1),
                _ => (0, 0),
            }
        );
        if status == "403 " {
            let first = answer.lines().next().unwrap_or_default();
            assert!(
                first.contains("is not reached from here") && first.contains("`sandbox.hosts`"),
                "{shown}: {first}"
            );
        }
    }
}

/// The host that was allowed is the one that the server is told.
#[tokio::test]
async fn a_request_says_nothing_of_another_host_and_of_the_proxy() {
    let port = echo("200 OK").await;
    let request = format!(
        "GET http://localhost:{port}/a?b HTTP/1.1\r\nHost: evil.example\r\nProxy-Authorization: Basic eA==\r\n\
         Proxy-Connection: keep-alive\r\nConnection: close, X-Hop\r\nX-Hop: 1\r\nX-Kept: 2\r\n\r\n"
    );
    let (answer, _) = told(&[format!("localhost:{port}")], &Upstream::default(), &request).await;
    let answer = answer.to_lowercase();
    assert!(answer.contains("get /a?b http/1.1") && answer.contains(&format!("host: localhost:{port}")), "{answer}");
    assert!(answer.contains("x-kept: 2"), "{answer}");
    for gone in ["evil.example", "proxy-authorization", "proxy-connection", "x-hop"] {
        assert!(!answer.contains(gone), "{gone}: {answer}");
    }
}

#[tokio::test]
async fn a_tunnel_carries_bytes_both_ways() {
    let port = echo("200 OK").await;
    let hosts = [format!("localhost:{port}")];
    let request = format!("CONNECT localhost:{port} HTTP/1.1\r\n\r\nGET /inner HTTP/1.1\r\n\r\n");
    let (answer, traffic) = told(&hosts, &Upstream::default(), &request).await;
    assert!(answer.starts_with("HTTP/1.1 200 ") && answer.contains("GET /inner"), "{answer}");
    assert_eq!(traffic.seen_since(0).reached.into_iter().collect::<Vec<_>>(), hosts);
}

/// A host that is listed and does not answer is no refusal.
#[tokio::test]
async fn a_host_that_is_not_there_is_named() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address").port();
    let place = format!("localhost:{free}");
    let request = format!("CONNECT {place} HTTP/1.1\r\n\r\n");
    let (answer, traffic) = told(std::slice::from_ref(&place), &Upstream::default(), &request).await;
    assert!(answer.starts_with("HTTP/1.1 502 ") && answer.contains(&place), "{answer}");
    assert!(traffic.seen_since(0).is_empty());
}

/// The user's own proxy is asked for what is listed, and only for that.
#[tokio::test]
async fn the_users_proxy_is_the_way_on() {
    let port = echo("200 OK").await;
    let refusing = echo("407 Proxy Authentication Required").await;
    let through = |port: u16, no: &str| {
        let proxy = format!("http://ann:word@127.0.0.1:{port}");
        Upstream { all: String::new(), http: proxy.clone(), https: proxy, no: no.to_owned() }
    };
    let hosts = ["good.example".to_owned()];
    let get = "GET http://good.example/a HTTP/1.1\r\nConnection: close\r\n\r\n";
    let (answer, _) = told(&hosts, &through(port, ""), get).await;
    let seen = answer.to_lowercase();
    assert!(seen.contains("get http://good.example/a http/1.1"), "{answer}");
    assert!(seen.contains("proxy-authorization: basic yw5uondvcmq=\r\n"), "{answer}");
    let connect = "CONNECT good.example:443 HTTP/1.1\r\n\r\n";
    let (answer, _) = told(&hosts, &through(refusing, ""), connect).await;
    assert!(answer.starts_with("HTTP/1.1 502 ") && answer.contains("it answers 407"), "{answer}");
    let (answer, _) = told(&hosts, &through(port, ""), "CONNECT bad.example:443 HTTP/1.1\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 403 "), "{answer}");
    // This machine is never reached by it.
    let (answer, _) = told(
        &[format!("localhost:{port}")],
        &through(refusing, ""),
        &format!("CONNECT localhost:{port} HTTP/1.1\r\n\r\nGET /inner HTTP/1.1\r\n\r\n"),
    )
    .await;
    assert!(answer.contains("GET /inner"), "{answer}");
    for proxy in ["socks5://127.0.0.1:1", "https://proxy.example"] {
        let unusable = Upstream { all: proxy.to_owned(), ..Upstream::default() };
        assert!(matcher(&unusable).is_err_and(|why| why.contains("http://")), "{proxy}");
    }
}

#[test]
fn a_name_leads_nowhere_inside() {
    for (address, is_it) in [
        ("127.0.0.1", true),
        ("127.8.8.8", true),
        ("0.0.0.0", true),
        ("169.254.169.254", true),
        ("224.0.0.1", true),
        ("::1", true),
        ("::", true),
        ("fe80::1", true),
        ("::ffff:127.0.0.1", true),
        ("::ffff:169.254.169.254", true),
        ("10.0.0.1", false),
        ("192.168.1.1", false),
        ("93.184.215.14", false),
        ("fd00::1", false),
        ("2001:db8::1", false),
    ] {
        assert_eq!(is_inner(&address.parse().expect("an address")), is_it, "{address}");
    }
}
