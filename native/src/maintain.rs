//! What the operations on experiments have in common: how they answer and refuse.

use std::future::Future;
use std::sync::Arc;

use futures::FutureExt;
use serde::Serialize;
use serde_json::json;

use crate::call::Reply;
use crate::error::{Class, Fault};
use crate::requests::{self, Requests};

/// Why a step was not made although it was asked for. See `lance.Refusal`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Refusal {
    pub code: &'static str,
    pub sentence: String,
}

impl Refusal {
    pub fn new(code: &'static str, sentence: impl Into<String>) -> Self {
        Self {
            code,
            sentence: sentence.into(),
        }
    }
}

/// Runs one operation on a table; its answer says what it cost.
pub async fn answer<T, W>(uri: &str, work: W) -> Result<Reply, Fault>
where
    T: Serialize,
    W: Future<Output = Result<T, Fault>> + Send,
{
    let counter = Arc::new(Requests::default());
    let answered = requests::for_item(counter.clone(), work.boxed()).await;
    let answered = answered.map_err(|fault| fault.at(uri))?;
    let mut json = serde_json::to_value(answered)
        .map_err(|error| Fault::new(Class::Internal, format!("answer: {error}")))?;
    json["storage_requests"] = json!(counter.snapshot());
    Ok(Reply::json(json))
}

/// "1 row", "2 rows".
pub fn count(number: i64, one: &str, many: &str) -> String {
    match number {
        1 => format!("1 {one}"),
        _ => format!("{number} {many}"),
    }
}
