//! JSON from and to our types, always by way of a [`Value`]: serde compiles each type once for each form it is read from
//! and written to, some 10 KB each time.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Error, Value};

/// An error of syntax has its line and column; others say what is missing or wrong.
pub(crate) fn from_json<T: DeserializeOwned>(text: impl AsRef<[u8]>) -> Result<T, Error> {
    serde_json::from_value(value(text.as_ref())?)
}

fn value(text: &[u8]) -> Result<Value, Error> {
    serde_json::from_slice(text)
}

/// One line, without spaces. Fails for a path that is not Unicode.
pub(crate) fn to_json<T: Serialize + ?Sized>(value: &T) -> Result<String, Error> {
    Ok(serde_json::to_value(value)?.to_string())
}
