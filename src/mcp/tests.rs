use std::io::{BufReader, Cursor};

use serde_json::{Value, json};

use super::line::{self, Line};
use super::message::Message;

fn lines(text: &[u8], piece: usize, longest: usize) -> Vec<Line> {
    let mut input = BufReader::with_capacity(piece, Cursor::new(text.to_vec()));
    let mut all = Vec::new();
    loop {
        match line::next(&mut input, longest).expect("a cursor can be read") {
            Line::End => return all,
            line => all.push(line),
        }
    }
}

#[test]
fn lines_are_the_same_however_they_come() {
    let text = "{}\n\n  \r\nünter\n0123456789\nlast".as_bytes();
    for piece in 1..=text.len() {
        let expected = ["{}", "ünter", "", "last"].map(|line| match line {
            "" => Line::TooLong,
            line => Line::Text(line.as_bytes().to_vec()),
        });
        assert_eq!(lines(text, piece, 8), expected, "in pieces of {piece}");
    }
}

#[test]
fn what_is_no_message_is_told_why() {
    let fault = |line: &str| match Message::read(line.as_bytes()).0.remove(0) {
        Message::Bad { id, fault } => (id, fault.to_json()["code"].clone()),
        message => panic!("{line}: {message:?}"),
    };
    assert_eq!(fault("{"), (Value::Null, json!(-32700)));
    assert_eq!(fault(&"[".repeat(100_000)), (Value::Null, json!(-32700)));
    assert_eq!(fault("7"), (Value::Null, json!(-32600)));
    assert_eq!(fault("[]"), (Value::Null, json!(-32600)));
    assert_eq!(fault(r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#), (json!(1), json!(-32600)));
    assert_eq!(fault(r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#), (Value::Null, json!(-32600)));
    assert_eq!(fault(r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#), (Value::Null, json!(-32600)));
    assert_eq!(fault(r#"{"jsonrpc":"2.0","id":"a","method":7}"#), (json!("a"), json!(-32600)));
    assert_eq!(fault(r#"{"jsonrpc":"2.0","id":"a","method":"ping","params":[1]}"#), (json!("a"), json!(-32602)));
}
