use std::sync::Arc;

use bytes::Bytes;
use serde_json::Value;

use crate::call::Reply;
use crate::engine::Engine;
use crate::error::{Class, Fault};

pub async fn make_dataset(_: Arc<Engine>, _: Value, _: Bytes) -> Result<Reply, Fault> {
    Err(Fault::new(Class::Unsupported, "make_dataset"))
}

pub async fn make_writes(_: Arc<Engine>, _: Value, _: Bytes) -> Result<Reply, Fault> {
    Err(Fault::new(Class::Unsupported, "make_writes"))
}

