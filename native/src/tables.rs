use std::sync::Arc;

use bytes::Bytes;
use serde_json::Value;

use crate::call::Reply;
use crate::engine::Engine;
use crate::error::{Class, Fault};

pub async fn head(_: Arc<Engine>, _: Value, _: Bytes) -> Result<Reply, Fault> {
    Err(Fault::new(Class::Unsupported, "head"))
}

pub async fn read_table(_: Arc<Engine>, _: Value, _: Bytes) -> Result<Reply, Fault> {
    Err(Fault::new(Class::Unsupported, "read_table"))
}

pub async fn count_rows(_: Arc<Engine>, _: Value, _: Bytes) -> Result<Reply, Fault> {
    Err(Fault::new(Class::Unsupported, "count_rows"))
}

pub async fn commit_snapshot(_: Arc<Engine>, _: Value, _: Bytes) -> Result<Reply, Fault> {
    Err(Fault::new(Class::Unsupported, "commit_snapshot"))
}

pub async fn append(_: Arc<Engine>, _: Value, _: Bytes) -> Result<Reply, Fault> {
    Err(Fault::new(Class::Unsupported, "append"))
}

pub async fn cleanup_versions(_: Arc<Engine>, _: Value, _: Bytes) -> Result<Reply, Fault> {
    Err(Fault::new(Class::Unsupported, "cleanup_versions"))
}

