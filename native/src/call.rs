//! From an operation's name to its function.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::engine::{self, Engine};
use crate::error::{Class, Fault};
use crate::{
    accept, cancel, compact, maker, merge, objects, observe, preview, probe, seal, sweep, tables,
    tail, verify, versions,
};

/// One request, copied from the caller's memory.
pub struct Call {
    pub engine: u64,
    pub cancel: u64,
    pub op: String,
    pub json: Vec<u8>,
    pub body: Bytes,
}

/// What an operation answers.
#[derive(Debug, Default)]
pub struct Reply {
    pub json: Value,
    pub body: Vec<u8>,
}

impl Reply {
    pub fn json(json: Value) -> Self {
        Self {
            json,
            body: Vec::new(),
        }
    }
}

pub type Work = Pin<Box<dyn Future<Output = Result<Reply, Fault>> + Send>>;

/// Runs one call on the calling thread until its work ends or is cancelled.
pub fn run(call: Call) -> Result<Reply, Fault> {
    match (call.op.as_str(), call.engine) {
        ("open", _) => return engine::open(parse(&call.json)?).map(Reply::json),
        ("close", number) => {
            engine::close(number);
            return Ok(Reply::json(json!({})));
        }
        ("debug_panic", 0) => return debug_panic(),
        _ => {}
    }
    let token = cancel::find(call.cancel)
        .ok_or_else(|| Fault::new(Class::Invalid, "unknown cancel token"))?;
    let slot = engine::find(call.engine)?;
    let work = start(&slot.engine, &call.op, &call.json, call.body)?;
    slot.block_on(work, &token)
}

/// The work behind an operation's name. Each future is boxed: some of Lance's
/// are big enough to overflow a stack.
pub fn start(engine: &Arc<Engine>, op: &str, json: &[u8], body: Bytes) -> Result<Work, Fault> {
    macro_rules! work {
        ($operation:path) => {
            Box::pin($operation(engine.clone(), parse(json)?, body))
        };
    }
    let work: Work = match op {
        "stats" => work!(stats),
        "probe" => work!(probe::probe),
        "observe" => work!(observe::observe),
        "head" => work!(tables::head),
        "read_table" => work!(tables::read_table),
        "count_rows" => work!(tables::count_rows),
        "commit_snapshot" => work!(tables::commit_snapshot),
        "append" => work!(tables::append),
        "cleanup_versions" => work!(tables::cleanup_versions),
        "classify_tail" => work!(tail::classify_tail),
        "seal_shard" => work!(seal::seal_shard),
        "compact" => work!(compact::compact),
        "cleanup_dataset" => work!(versions::cleanup_dataset),
        "sweep_generations" => work!(sweep::sweep_generations),
        "verify" => work!(verify::verify),
        "preview" => work!(preview::preview),
        "merge_wal" => work!(merge::merge_wal),
        "accept_shards" => work!(accept::accept_shards),
        "put" => work!(objects::put),
        "get" => work!(objects::get),
        "list" => work!(objects::list),
        "list_dirs" => work!(objects::list_dirs),
        "delete" => work!(objects::delete),
        "make_dataset" => work!(maker::make_dataset),
        "make_fleet" => work!(maker::make_fleet),
        "make_writes" => work!(maker::make_writes),
        "debug_panic" => Box::pin(async { debug_panic() }),
        "debug_sleep" => work!(debug_sleep),
        _ => {
            return Err(Fault::new(
                Class::Invalid,
                format!("unknown operation {op:?}"),
            ));
        }
    };
    Ok(work)
}

/// An empty request means an empty object.
fn parse<T: DeserializeOwned>(json: &[u8]) -> Result<T, Fault> {
    let json: &[u8] = if json.is_empty() { b"{}" } else { json };
    serde_json::from_slice(json)
        .map_err(|error| Fault::new(Class::Invalid, format!("request: {error}")))
}

#[derive(Deserialize)]
struct Nothing {}

async fn stats(engine: Arc<Engine>, _: Nothing, _: Bytes) -> Result<Reply, Fault> {
    Ok(Reply::json(engine.stats()))
}

/// Asked for by the caller, to test what a panic does.
fn debug_panic() -> Result<Reply, Fault> {
    panic!("asked for by debug_panic")
}

#[derive(Deserialize)]
struct Sleep {
    ms: u64,
}

async fn debug_sleep(_: Arc<Engine>, request: Sleep, _: Bytes) -> Result<Reply, Fault> {
    tokio::time::sleep(Duration::from_millis(request.ms)).await;
    Ok(Reply::json(json!({})))
}
