//! The cheap question: is the fingerprint still this?

use std::sync::Arc;

use bytes::Bytes;
use futures::future::join_all;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::batch::{self, Limits};
use crate::call::Reply;
use crate::engine::Engine;
use crate::error::Fault;
use crate::fingerprint::Fingerprint;
use crate::probe_local::{self, LocalTarget};
use crate::remote::Remote;
use crate::requests::Snapshot;

#[derive(Deserialize)]
pub struct Probe {
    targets: Vec<Target>,
    #[serde(default)]
    concurrency: usize,
    #[serde(default)]
    timeout_ms: u64,
}

#[derive(Clone, Deserialize)]
pub struct Target {
    pub uri: String,
    pub fingerprint: Fingerprint,
    #[serde(default)]
    deep: bool,
    #[serde(default)]
    list_versions: bool,
    #[serde(default)]
    manifests: Manifests,
}

/// Which of a shard's manifests a deep probe asks for. A caller that can wait a
/// turn for the rarer of two changes saves a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Manifests {
    #[default]
    Both,
    /// The one after the known one: the shard was flushed, claimed or drained.
    Next,
    /// The known one: it is still the same shard.
    Known,
}

/// What moved; `None`: nothing did.
pub type Moved = Option<String>;

pub async fn probe(engine: Arc<Engine>, request: Probe, _: Bytes) -> Result<Reply, Fault> {
    let limits = Limits::new(request.concurrency, request.timeout_ms);
    let mut results = vec![Value::Null; request.targets.len()];
    let (mut local, mut remote) = (Vec::new(), Vec::new());
    for (place, target) in request.targets.into_iter().enumerate() {
        // Building the client of a remote store may ask for credentials: that
        // is left to the target's own task and time.
        if !on_disk(&target.uri) {
            remote.push((place, target));
            continue;
        }
        match engine.store(&target.uri).await {
            Ok((store, base)) if store.is_local() => {
                local.push(LocalTarget::new(place, base, target));
            }
            Ok(_) => remote.push((place, target)),
            Err(fault) => results[place] = answer(Err(fault), Snapshot::default()),
        }
    }
    let places: Vec<usize> = remote.iter().map(|(place, _)| *place).collect();
    let (locals, remotes) = tokio::join!(
        probe_local::probe(&engine, local, limits, Arc::new(probe_local::look)),
        batch::run(remote, limits, |(_, target)| {
            probe_remote(engine.clone(), target)
        })
    );
    for (place, outcome) in places.into_iter().zip(remotes) {
        results[place] = answer(outcome.result, outcome.requests);
    }
    for (place, outcome) in locals {
        results[place] = answer(outcome.result, outcome.requests);
    }
    Ok(Reply::json(json!({ "results": results })))
}

fn answer(moved: Result<Moved, Fault>, requests: Snapshot) -> Value {
    match moved {
        Ok(None) => json!({ "state": "unchanged", "requests": requests }),
        Ok(Some(detail)) => {
            json!({ "state": "changed", "detail": detail, "requests": requests })
        }
        Err(fault) => {
            json!({ "state": "unknown", "error": fault.to_json(), "requests": requests })
        }
    }
}

/// A plain path, or one of the schemes that Lance reads as such.
fn on_disk(uri: &str) -> bool {
    match uri.split_once("://") {
        Some((scheme, _)) => ["file", "file+uring"].contains(&scheme),
        None => true,
    }
}

/// Asks only what it must; every request counts, in money and in time. All of
/// them go out at once: a target takes one round trip.
async fn probe_remote(engine: Arc<Engine>, target: Target) -> Result<Moved, Fault> {
    let (store, base) = engine.store(&target.uri).await?;
    let known = &target.fingerprint;
    if known.version == 0 {
        return Ok(Some("base version".to_owned()));
    }
    let remote = Remote { store, base };
    let head = async {
        if target.uri.starts_with("s3+ddb") {
            return external_head_moved(&engine, &target, &remote).await;
        }
        match target.list_versions {
            true => remote.head_moved_by_listing(known).await,
            false => remote.head_moved(known, target.deep).await,
        }
    };
    let folders = async {
        match target.deep {
            true => remote.shards_moved(known).await,
            false => Ok(None),
        }
    };
    let marks = known.shards.iter();
    let shards = join_all(
        marks.map(|mark| remote.shard_moved(mark, target.deep.then_some(target.manifests))),
    );
    let (head, folders, shards) = tokio::join!(head, folders, shards);
    first_moved([head, folders].into_iter().chain(shards)).map_err(|fault| fault.at(&target.uri))
}

/// A proven change outweighs an unanswered question: it needs no more proof.
pub fn first_moved(answers: impl Iterator<Item = Result<Moved, Fault>>) -> Result<Moved, Fault> {
    let mut fault = None;
    for answer in answers {
        match answer {
            Ok(Some(detail)) => return Ok(Some(detail)),
            Ok(None) => {}
            Err(error) => fault = fault.or(Some(error)),
        }
    }
    fault.map_or(Ok(None), Err)
}

/// With an external manifest store that one is the authority on the head.
async fn external_head_moved(
    engine: &Engine,
    target: &Target,
    remote: &Remote,
) -> Result<Moved, Fault> {
    let handler = engine.commit_handler(&target.uri).await?;
    let head = handler
        .resolve_latest_location(&remote.base, &remote.store)
        .await?;
    Ok((head.version != target.fingerprint.version).then(|| "base version".to_owned()))
}
