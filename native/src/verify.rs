//! What a retirement rests on: everything seen anew, between two equal
//! fingerprints.

mod deep;

use std::sync::Arc;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::call::Reply;
use crate::clock::now;
use crate::engine::Engine;
use crate::error::{Class, Fault};
use crate::fingerprint::Fingerprint;
use crate::fresh::Fresh;
use crate::maintain::{self, count};
use crate::merge;
use crate::observe::{self, Observation};
use crate::shard::Shard;
use crate::tail::{self, Tail};
use crate::wal::Wal;

#[derive(Deserialize)]
pub struct Verify {
    uri: String,
    #[serde(default)]
    deep: bool,
}

/// See `fleet.Evidence`.
#[derive(Clone, Debug, Serialize)]
pub struct Evidence {
    fingerprint: Fingerprint,
    rows: i64,
    fragments: i64,
    bytes: i64,
    shards: Vec<ShardEvidence>,
    pending: i64,
    stranded: i64,
    unknown: i64,
    blocking: Vec<String>,
    distinct_keys: i64,
    verified_at: i64,
}

/// See `fleet.ShardEvidence`.
#[derive(Clone, Debug, Serialize)]
struct ShardEvidence {
    id: Uuid,
    epoch: u64,
    mark: u64,
    pending: i64,
    contained: i64,
    in_base: i64,
    superseded: i64,
    stranded: i64,
    unknown: i64,
}

/// See README.md.
pub async fn verify(engine: Arc<Engine>, request: Verify, _: Bytes) -> Result<Reply, Fault> {
    let uri = request.uri.as_str();
    maintain::answer(uri, look(&engine, uri, request.deep)).await
}

async fn look(engine: &Engine, uri: &str, deep: bool) -> Result<Evidence, Fault> {
    let verified_at = now();
    let before = observe::measure(engine, uri).await?;
    let fresh = Fresh::open(engine, uri).await?;
    let tails = tail::tails(&fresh).await.map_err(vanished)?;
    let rows = fresh.base.count_rows(None).await.map_err(Fault::from);
    let rows = rows.map_err(vanished)? as i64;
    let distinct_keys = match deep {
        true => deep::distinct_keys(&fresh.base).await.map_err(vanished)?,
        false => -1,
    };
    let after = observe::measure(engine, uri).await?;
    same(&before.fingerprint, &after.fingerprint)?;
    let anew = fresh.counted_anew().await.map_err(vanished)?;
    let mut blocking = blocking(&after, &fresh, &anew, &tails);
    for tail in &tails {
        let (remote, shard) = (&fresh.remote, tail.shard);
        if (Wal { remote, shard }).has_more_after(tail.next).await? {
            blocking.push(interrupted(tail));
        }
    }
    if (0..rows).contains(&distinct_keys) {
        blocking.push(repeated(rows, distinct_keys));
    }
    Ok(Evidence {
        rows,
        fragments: after.fragments,
        bytes: after.bytes,
        pending: after.shards.iter().map(|shard| shard.pending).sum(),
        stranded: tails.iter().map(|tail| tail.stranded).sum(),
        unknown: tails.iter().map(|tail| tail.unknown).sum(),
        shards: after
            .shards
            .iter()
            .map(|shard| of_shard(shard, &tails))
            .collect(),
        fingerprint: after.fingerprint,
        blocking,
        distinct_keys,
        verified_at,
    })
}

/// The table is there: both observations saw it. What went was drained or
/// cleaned up while it was looked at.
fn vanished(fault: Fault) -> Fault {
    match fault.class {
        Class::Gone => Fault::new(
            Class::Conflict,
            format!("it changed while it was verified: {}", fault.message),
        ),
        _ => fault,
    }
}

fn same(before: &Fingerprint, after: &Fingerprint) -> Result<(), Fault> {
    match before == after {
        true => Ok(()),
        false => Err(Fault::new(
            Class::Conflict,
            "it changed while it was verified",
        )),
    }
}

fn of_shard(shard: &Shard, tails: &[Tail]) -> ShardEvidence {
    let none = Tail::default();
    let tail = tails.iter().find(|tail| tail.shard == shard.mark.id);
    let tail = tail.unwrap_or(&none);
    ShardEvidence {
        id: shard.mark.id,
        epoch: shard.epoch,
        mark: shard.compacted_mark,
        pending: shard.pending,
        contained: tail.contained,
        in_base: tail.in_base,
        superseded: tail.superseded,
        stranded: tail.stranded,
        unknown: tail.unknown,
    }
}

/// One sentence for each thing that stops a retirement. `anew`: the shards whose
/// generations can't be told from merged ones.
pub fn blocking(
    seen: &Observation,
    fresh: &Fresh<'_>,
    anew: &[Uuid],
    tails: &[Tail],
) -> Vec<String> {
    let mut sentences = Vec::new();
    for shard in &seen.shards {
        let (id, anew) = (&shard.mark.id, anew.contains(&shard.mark.id));
        sentences.extend(of_generations(shard, anew));
        let merged = fresh.merged(id);
        if merged > 0 && !anew {
            sentences.push(format!(
                "shard {id} still lists {} that the base has: a merge takes them out",
                count(merged as i64, "generation", "generations"),
            ));
        }
    }
    let tails = tails.iter().map(|tail| tail.sentence.clone());
    sentences.extend(tails.filter(|one| !one.is_empty()));
    sentences
}

fn of_generations(shard: &Shard, anew: bool) -> Option<String> {
    let (id, pending) = (shard.mark.id, shard.pending);
    // What such a shard has below the old mark is not counted as pending.
    if anew {
        return Some(format!(
            "shard {id} counts its generations anew (the next is {}, the base has those up to {}): \
             nobody can tell which of them the base has{}",
            shard.current_generation,
            shard.compacted_mark,
            merge::DECIDE
        ));
    }
    if pending == 0 {
        return None;
    }
    let generations = count(pending, "generation is", "generations are");
    Some(match shard.status {
        "sealed" => format!("shard {id} is sealed by its owner and {generations} pending"),
        _ => format!("shard {id}: {generations} not merged yet"),
    })
}

fn interrupted(tail: &Tail) -> String {
    format!(
        "shard {}: entry {} of its log is lost, and there are entries after it: a writer would not \
         replay them",
        tail.shard, tail.next
    )
}

fn repeated(rows: i64, keys: i64) -> String {
    format!(
        "the table has {} under {}: {} of a key that another row has already",
        count(rows, "row", "rows"),
        count(keys, "key", "keys"),
        count(rows - keys, "row is", "rows are"),
    )
}
