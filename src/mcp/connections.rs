//! Accepts HTTP connections. Those without a request make room for new ones.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::{Arc, Weak};
use std::time::Duration;

use http::{Request, Response};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::AbortHandle;
use tokio::time::sleep;

use super::server::{Body, Server};
use crate::engine::spawn;

pub(super) struct Limits {
    /// Maximum open connections.
    pub(super) connections: usize,
    /// How long a client may take to send the headers of its next request.
    pub(super) headers: Duration,
}

/// How long to wait when there is no room for another connection.
const PAUSE: Duration = Duration::from_millis(50);

struct Connection {
    task: AbortHandle,
    /// Each request holds a copy, from when it has been read until its response has been sent.
    requests: Arc<()>,
}

pub(super) async fn accept(listener: TcpListener, server: Arc<Server>, limits: Limits) -> Infallible {
    let mut connections = VecDeque::new();
    loop {
        // It fails if the client is gone already, or if there is no free file descriptor.
        let Ok((stream, _)) = listener.accept().await else {
            close_idle(&mut connections);
            sleep(PAUSE).await;
            continue;
        };
        // Otherwise the end of an answer waits until the client has acknowledged its beginning: 40 ms. Without it, answers
        // are late, not wrong.
        let _ = stream.set_nodelay(true);
        make_room(&mut connections, limits.connections).await;
        let requests = Arc::new(());
        let task = spawn(serve(stream, Arc::clone(&server), Arc::downgrade(&requests), limits.headers));
        connections.push_back(Connection { task: task.abort_handle(), requests });
    }
}

async fn make_room(connections: &mut VecDeque<Connection>, most: usize) {
    loop {
        connections.retain(|connection| !connection.task.is_finished());
        if connections.len() < most {
            return;
        }
        if !close_idle(connections) {
            sleep(PAUSE).await;
        }
    }
}

/// Closes the oldest connection without a request. Otherwise a client without the token could keep others out, with
/// connections on which it sends nothing.
fn close_idle(connections: &mut VecDeque<Connection>) -> bool {
    let oldest = connections.iter().position(|connection| Arc::strong_count(&connection.requests) == 1);
    let Some(connection) = oldest.and_then(|at| connections.remove(at)) else { return false };
    connection.task.abort();
    true
}

async fn serve(stream: TcpStream, server: Arc<Server>, requests: Weak<()>, limit: Duration) {
    let service = service_fn(|request| async { Ok::<_, Infallible>(answer(&server, request, &requests).await) });
    // It fails when a client disconnects early or does not speak HTTP; neither concerns the server.
    let _ = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limit)
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

async fn answer(server: &Server, request: Request<Incoming>, requests: &Weak<()>) -> Response<Body> {
    let request = match server.receive(request).await {
        Ok(request) => request,
        Err(refused) => return refused,
    };
    let running = requests.upgrade();
    let response = server.answer(request).await;
    if hyper::body::Body::size_hint(response.body()).exact().is_some() {
        return response;
    }
    response.map(|body| {
        Body::new(body.map_frame(move |frame| {
            let _running = &running;
            frame
        }))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;
    use crate::mcp::stub::Stub;

    const MOST: usize = 3;

    async fn connect(address: &str, text: &str) -> TcpStream {
        let mut stream = TcpStream::connect(address).await.expect("it listens");
        stream.write_all(text.as_bytes()).await.expect("it is open");
        stream
    }

    fn request(address: &str, session: &str, message: &Value) -> String {
        let body = message.to_string();
        format!(
            "POST /mcp HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer secret\r\nContent-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\nContent-Length: {}\r\nConnection: close\r\n{session}\r\n{body}",
            body.len()
        )
    }

    async fn answer(mut stream: TcpStream) -> String {
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.expect("an answer");
        answer
    }

    #[tokio::test]
    async fn connections_without_a_request_make_room_and_those_with_one_stay() {
        let (stub, finish) = Stub::new();
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address").to_string();
        let server = Arc::new(Server::new(Arc::new(stub), vec!["127.0.0.1".to_owned()], "secret".to_owned()));
        // Nothing ends by itself here.
        let limits = Limits { connections: MOST, headers: Duration::from_secs(24 * 3600) };
        spawn(accept(listener, server, limits));
        let client =
            json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
        let greeting = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": client});
        let greeted = answer(connect(&address, &request(&address, "", &greeting)).await).await;
        let session = greeted.lines().find(|line| line.starts_with("mcp-session-id")).expect(&greeted);
        let session = format!("{session}\r\n");
        let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        answer(connect(&address, &request(&address, &session, &ready)).await).await;
        let call = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "wait"}});
        let mut running = connect(&address, &request(&address, &session, &call)).await;
        let mut start = [0; 15];
        running.read_exact(&mut start).await.expect("its headers");
        assert_eq!(&start, b"HTTP/1.1 200 OK");

        let mut silent = Vec::new();
        for text in [
            "POST /mcp HTTP/1.1\r\n",
            "",
            "POST /mcp HTTP/1.1\r\nAuthorization: Bearer secret\r\nContent-Length: 9\r\n\r\n{",
        ] {
            for _ in 0..MOST {
                silent.push(connect(&address, text).await);
            }
        }
        let list = json!({"jsonrpc": "2.0", "id": 3, "method": "tools/list"});
        let listed = answer(connect(&address, &request(&address, &session, &list)).await).await;
        assert!(listed.contains("\"wait\""), "{listed}");
        finish.send(()).expect("the call waits");
        let called = answer(running).await;
        assert!(called.contains("finished"), "{called}");
    }
}
