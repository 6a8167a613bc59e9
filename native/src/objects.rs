use std::sync::Arc;

use bytes::Bytes;
use serde_json::Value;

use crate::call::Reply;
use crate::engine::Engine;
use crate::error::{Class, Fault};

pub async fn put(_: Arc<Engine>, _: Value, _: Bytes) -> Result<Reply, Fault> {
    Err(Fault::new(Class::Unsupported, "put"))
}

pub async fn get(_: Arc<Engine>, _: Value, _: Bytes) -> Result<Reply, Fault> {
    Err(Fault::new(Class::Unsupported, "get"))
}

pub async fn list(_: Arc<Engine>, _: Value, _: Bytes) -> Result<Reply, Fault> {
    Err(Fault::new(Class::Unsupported, "list"))
}

pub async fn list_dirs(_: Arc<Engine>, _: Value, _: Bytes) -> Result<Reply, Fault> {
    Err(Fault::new(Class::Unsupported, "list_dirs"))
}

pub async fn delete(_: Arc<Engine>, _: Value, _: Bytes) -> Result<Reply, Fault> {
    Err(Fault::new(Class::Unsupported, "delete"))
}

