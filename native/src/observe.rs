//! The full measurement of a dataset. It never reads a table's data.

use std::sync::Arc;

use bytes::Bytes;
use futures::{FutureExt, StreamExt, TryStreamExt};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::base::{self, Indexes, Refs, Size};
use crate::batch::{self, Limits, Outcome};
use crate::call::Reply;
use crate::clock::now;
use crate::commits::{Commit, Walk, WalkPast};
use crate::engine::Engine;
use crate::error::{Class, Fault};
use crate::fingerprint::Fingerprint;
use crate::remote::Remote;
use crate::shard::{Seen, Shard, Shards};

/// Shards of one dataset that are looked at at once.
const SHARDS_AT_ONCE: usize = 8;
/// A live writer, a merger and a cleanup may take away what we are looking at;
/// the next look sees what they left.
const ATTEMPTS: usize = 3;

#[derive(Deserialize)]
pub struct Observe {
    targets: Vec<Target>,
    #[serde(default)]
    walk_past: WalkPast,
    #[serde(default)]
    max_commits: usize,
    #[serde(default)]
    concurrency: usize,
    #[serde(default)]
    timeout_ms: u64,
}

#[derive(Deserialize)]
struct Target {
    uri: String,
    #[serde(default)]
    known_version: u64,
    #[serde(default)]
    target_rows: i64,
}

/// See `fleet.Observation`.
#[derive(Clone, Debug, Serialize)]
pub struct Observation {
    pub fingerprint: Fingerprint,
    manifest_time: i64,
    pub fragments: i64,
    small_fragments: i64,
    base_rows: i64,
    deleted_rows: i64,
    pub bytes: i64,
    keyed: bool,
    indexes: Vec<String>,
    tags: Vec<String>,
    branches: Vec<String>,
    commits: Vec<Commit>,
    pub shards: Vec<Shard>,
    observed_at: i64,
}

pub async fn observe(engine: Arc<Engine>, request: Observe, _: Bytes) -> Result<Reply, Fault> {
    let limits = Limits::new(request.concurrency, request.timeout_ms);
    let walk = Walk {
        known_version: 0,
        walk_past: request.walk_past,
        max_commits: request.max_commits,
    };
    let outcomes = batch::run(request.targets, limits, |target| {
        let (engine, walk) = (engine.clone(), walk.clone());
        async move {
            let walk = Walk {
                known_version: target.known_version,
                ..walk
            };
            let observed = observe_one(&engine, &target, &walk).boxed().await;
            observed.map_err(|fault| fault.at(&target.uri))
        }
    })
    .await;
    let results: Vec<Value> = outcomes.into_iter().map(answer).collect();
    Ok(Reply::json(json!({ "results": results })))
}

fn answer(outcome: Outcome<Observation>) -> Value {
    let requests = outcome.requests;
    match outcome.result {
        Ok(observation) => json!({ "observation": observation, "requests": requests }),
        Err(fault) => json!({ "error": fault.to_json(), "requests": requests }),
    }
}

/// One dataset, measured without its history.
pub async fn measure(engine: &Engine, uri: &str) -> Result<Observation, Fault> {
    let target = Target {
        uri: uri.to_owned(),
        known_version: 0,
        target_rows: 0,
    };
    let walk = Walk {
        max_commits: 1,
        ..Walk::default()
    };
    observe_one(engine, &target, &walk).boxed().await
}

async fn observe_one(engine: &Engine, target: &Target, walk: &Walk) -> Result<Observation, Fault> {
    let mut attempt = 1;
    loop {
        match look(engine, target, walk).boxed().await {
            Err(Missed { fault, again: true })
                if fault.class == Class::Gone && attempt < ATTEMPTS =>
            {
                attempt += 1;
            }
            seen => return seen.map_err(|missed| missed.fault),
        }
    }
}

/// A look that did not succeed. `again`: the table is there; only something that
/// it named a moment ago is not.
struct Missed {
    fault: Fault,
    again: bool,
}

impl From<Fault> for Missed {
    fn from(fault: Fault) -> Self {
        Self { fault, again: true }
    }
}

/// One consistent picture. The shards are read before the base: a merge first
/// commits to the base and then takes generations out of their shard, so rows
/// that move in between are seen pending, and the base's marks, read later, tell
/// that they are in the base already. The other order would lose them.
async fn look(engine: &Engine, target: &Target, walk: &Walk) -> Result<Observation, Missed> {
    let observed_at = now();
    let uri = target.uri.as_str();
    let (store, base) = engine.store(uri).await?;
    let remote = Remote { store, base };
    let shards = Shards {
        engine,
        remote: &remote,
        uri,
    };
    let seen = see_shards(&shards).await?;
    let head = base::head(engine, &remote, uri)
        .await
        .map_err(|fault| Missed {
            fault,
            again: false,
        })?;
    let dataset = base::open(engine, uri, &head).boxed().await?;
    let size = Size::of(&dataset, target.target_rows).boxed().await?;
    let indexes = Indexes::of(&dataset).boxed().await?;
    let refs = Refs::of(&remote).await?;
    let commits = walk.commits(&dataset).boxed().await?;
    let keyed = !dataset.schema().unenforced_primary_key().is_empty();
    let shards: Vec<Shard> = futures::stream::iter(seen)
        .map(|seen| {
            let mark = indexes.mark(&seen.id);
            shards.measure(seen, mark, keyed).boxed()
        })
        .buffered(SHARDS_AT_ONCE)
        .try_collect()
        .await?;
    Ok(Observation {
        fingerprint: Fingerprint {
            version: head.version,
            etag: head.etag,
            naming: head.naming,
            gaps: head.gaps,
            refs: refs.any(),
            shards: shards.iter().map(|shard| shard.mark.clone()).collect(),
        },
        manifest_time: dataset.manifest().timestamp().timestamp_millis(),
        fragments: size.fragments,
        small_fragments: size.small_fragments,
        base_rows: size.rows,
        deleted_rows: size.deleted_rows,
        bytes: with_pending(size.bytes, &shards),
        keyed,
        indexes: indexes.names,
        tags: refs.tags,
        branches: refs.branches,
        commits,
        shards,
        observed_at,
    })
}

async fn see_shards(shards: &Shards<'_>) -> Result<Vec<Seen>, Fault> {
    futures::stream::iter(shards.ids().await?)
        .map(|id| shards.see(id).boxed())
        .buffered(SHARDS_AT_ONCE)
        .try_collect()
        .await
}

/// The base's bytes and, where known, those of pending generations.
fn with_pending(base: i64, shards: &[Shard]) -> i64 {
    if base < 0 {
        return -1;
    }
    let pending = shards.iter().map(|shard| shard.pending_bytes.max(0));
    base + pending.sum::<i64>()
}
