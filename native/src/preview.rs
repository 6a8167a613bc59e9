//! What maintenance would do. Nothing is written.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::call::Reply;
use crate::compact::{self, Compacted, Wanted};
use crate::engine::Engine;
use crate::error::Fault;
use crate::fresh::Fresh;
use crate::maintain::{self, Refusal};
use crate::merge;
use crate::observe;
use crate::shard::Shard;
use crate::tail::{self, Tail};
use crate::verify;
use crate::versions::{self, CleanedVersions};

#[derive(Deserialize)]
pub struct AskPreview {
    uri: String,
    /// Marks that the caller remembers, by shard.
    #[serde(default)]
    remembered_marks: BTreeMap<Uuid, u64>,
    #[serde(default)]
    target_rows: i64,
    #[serde(default)]
    min_fragments: usize,
    /// 0: no cleanup.
    #[serde(default)]
    older_than_ms: i64,
}

/// See `lance.Preview`.
#[derive(Clone, Debug, Serialize)]
pub struct Preview {
    merge: Vec<MergePreview>,
    compact: Compacted,
    versions: CleanedVersions,
    tails: Vec<Tail>,
    blocking: Vec<String>,
}

/// See `lance.MergePreview`.
#[derive(Clone, Debug, Serialize)]
struct MergePreview {
    shard: Uuid,
    #[serde(skip_serializing_if = "Option::is_none")]
    refused: Option<Refusal>,
    generations: i64,
    rows: i64,
    bytes: i64,
}

/// See README.md.
pub async fn preview(engine: Arc<Engine>, request: AskPreview, _: Bytes) -> Result<Reply, Fault> {
    let uri = request.uri.as_str();
    maintain::answer(uri, look(&engine, uri, &request)).await
}

async fn look(engine: &Engine, uri: &str, request: &AskPreview) -> Result<Preview, Fault> {
    let seen = observe::measure(engine, uri).await?;
    let fresh = Fresh::open(engine, uri).await?;
    let tails = tail::tails(&fresh).await?;
    let wanted = Wanted {
        target_rows: request.target_rows,
        min_fragments: request.min_fragments,
        ..Wanted::default()
    };
    let mut planned = Vec::new();
    for shard in seen.shards.iter().filter(|one| one.pending > 0) {
        let id = shard.mark.id;
        let remembered = request.remembered_marks.get(&id).copied();
        let refused = merge::refusal(engine, uri, id, remembered.unwrap_or(0)).await?;
        planned.push(of_shard(shard, refused));
    }
    Ok(Preview {
        merge: planned,
        compact: compact::preview(&fresh.base, wanted).await?,
        versions: versions::preview(&fresh.base, request.older_than_ms).await?,
        blocking: verify::blocking(&seen, &fresh, &fresh.counted_anew().await?, &tails),
        tails,
    })
}

fn of_shard(shard: &Shard, refused: Option<Refusal>) -> MergePreview {
    MergePreview {
        shard: shard.mark.id,
        refused,
        generations: shard.pending,
        rows: shard.pending_rows,
        bytes: shard.pending_bytes,
    }
}
