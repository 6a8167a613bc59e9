use std::sync::Arc;

use bytes::Bytes;
use serde_json::Value;

use crate::call::Reply;
use crate::engine::Engine;
use crate::error::{Class, Fault};

pub async fn observe(_: Arc<Engine>, _: Value, _: Bytes) -> Result<Reply, Fault> {
    Err(Fault::new(Class::Unsupported, "observe"))
}

