//! What an operator decides about shards that no merge may touch: their table was
//! restored or overwritten, or they were removed and made anew. The decision is one
//! commit to the table, made only if everything is as the operator saw it. From then
//! on the shards are merged like any other.

mod compare;
mod plan;
mod strict;
mod words;

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use futures::FutureExt;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use self::plan::Plan;
use crate::call::Reply;
use crate::engine::Engine;
use crate::error::{Class, Fault};
use crate::fresh::{self, Fresh};
use crate::generation::Generation;
use crate::maintain::{self, Refusal};
use crate::merge::{DECIDE, ERASED, Look, RESTARTED};
use crate::shard::Latest;
use crate::tail;

/// See `lance.AcceptSpec`.
#[derive(Clone, Debug, Deserialize)]
pub struct AcceptShards {
    uri: String,
    /// Marks that the caller remembers, by shard.
    #[serde(default)]
    remembered_marks: BTreeMap<Uuid, u64>,
    /// What is listed is taken out without being merged.
    #[serde(default)]
    leave_out: bool,
    /// What a dry run answered: it is decided about that and nothing else.
    #[serde(default)]
    seen: String,
    /// Whose decision it is: the same one is carried out once.
    #[serde(default)]
    decision: String,
    #[serde(default)]
    dry_run: bool,
    #[serde(default)]
    property: String,
}

/// See `lance.Accepted`.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Accepted {
    #[serde(skip_serializing_if = "Option::is_none")]
    refused: Option<Refusal>,
    seen: String,
    version_before: u64,
    version: u64,
    shards: Vec<AcceptedShard>,
}

/// See `lance.AcceptedShard`.
#[derive(Clone, Debug, Default, Serialize)]
pub struct AcceptedShard {
    shard: Uuid,
    code: &'static str,
    mark_before: u64,
    mark: u64,
    remembered: u64,
    generations: i64,
    rows: i64,
    bytes: i64,
    sentences: Vec<String>,
}

/// A shard that stands refused.
struct Stuck {
    look: Look,
    manifest: Latest,
    refusal: Refusal,
    remembered: u64,
    plan: Plan,
    opened: Vec<Generation>,
}

/// See README.md.
pub async fn accept_shards(
    engine: Arc<Engine>,
    request: AcceptShards,
    _: Bytes,
) -> Result<Reply, Fault> {
    let uri = request.uri.clone();
    maintain::answer(&uri, accept(&engine, &request)).await
}

async fn accept(engine: &Engine, request: &AcceptShards) -> Result<Accepted, Fault> {
    let uri = request.uri.as_str();
    if !request.dry_run
        && let Some(done) = done_before(engine, request).boxed().await?
    {
        return Ok(done);
    }
    let fresh = Fresh::open(engine, uri).await?;
    let (stuck, others) = look(engine, request, &fresh).boxed().await?;
    let version = fresh.base.version_id();
    let mut accepted = Accepted {
        seen: seen(request, &fresh, &stuck),
        version_before: version,
        version,
        ..Accepted::default()
    };
    for one in &stuck {
        accepted.shards.push(one.told(request).boxed().await?);
    }
    accepted.refused = match others {
        Some(other) => Some(other),
        None if stuck.is_empty() => Some(nothing()),
        None if !request.dry_run && accepted.seen != request.seen => Some(moved()),
        None => None,
    };
    if request.dry_run || accepted.refused.is_some() {
        return Ok(accepted);
    }
    match strict::commit(engine, request, fresh.base, &stuck).await {
        Ok(version) => accepted.version = version,
        Err(fault) if fault.class == Class::Conflict => accepted.refused = Some(moved()),
        Err(fault) => return Err(fault),
    }
    Ok(accepted)
}

/// Everything up to the commit, for a test that has something happen in between.
#[cfg(test)]
pub async fn commit_after(
    engine: &Engine,
    request: &AcceptShards,
    meanwhile: impl Future<Output = ()>,
) -> Result<u64, Fault> {
    let fresh = Fresh::open(engine, &request.uri).await?;
    let (stuck, _) = look(engine, request, &fresh).boxed().await?;
    meanwhile.await;
    strict::commit(engine, request, fresh.base, &stuck).await
}

fn nothing() -> Refusal {
    let sentence = "no shard stands refused in a way that an operator could decide about";
    Refusal::new("nothing_refused", sentence)
}

fn moved() -> Refusal {
    let sentence = "the table or its log is not as it was looked at: look again, then decide";
    Refusal::new("moved", sentence)
}

/// An attempt of the same decision that was made before.
async fn done_before(engine: &Engine, request: &AcceptShards) -> Result<Option<Accepted>, Fault> {
    if request.decision.is_empty() {
        return Ok(None);
    }
    let base = fresh::open(engine, &request.uri).await?;
    let found = tail::decision(&base, &request.decision).await?;
    Ok(found.map(|(version, decision)| Accepted {
        seen: request.seen.clone(),
        version_before: version - 1,
        version,
        shards: of_decision(&decision),
        ..Accepted::default()
    }))
}

fn of_decision(decision: &tail::Decision) -> Vec<AcceptedShard> {
    let shards = decision.marks.iter();
    shards
        .map(|(shard, mark)| AcceptedShard {
            shard: *shard,
            mark: *mark,
            ..AcceptedShard::default()
        })
        .collect()
}

/// The shards that stand refused, and what speaks against deciding about them.
async fn look(
    engine: &Engine,
    request: &AcceptShards,
    fresh: &Fresh<'_>,
) -> Result<(Vec<Stuck>, Option<Refusal>), Fault> {
    let uri = request.uri.as_str();
    let (mut stuck, mut against) = (Vec::new(), None);
    for (shard, manifest) in &fresh.shards {
        let Some(manifest) = manifest else { continue };
        let look = Look::new(engine, uri, *shard).await?;
        if look.base.version_id() != fresh.base.version_id() {
            let message = "the table was written while it was looked at";
            return Err(Fault::new(Class::Conflict, message));
        }
        let known = request.remembered_marks.get(shard).copied().unwrap_or(0);
        let Some(refusal) = look.refusal(engine, uri, known).await? else {
            continue;
        };
        if ![ERASED, RESTARTED].contains(&refusal.code) {
            continue;
        }
        let record = tail::record(&look.base, *shard).boxed().await?;
        match Plan::of(&look, record.as_ref(), request.leave_out) {
            Err(refusal) => against = Some(refusal),
            Ok(plan) => stuck.push(Stuck {
                remembered: look.remembered(known).await?,
                opened: open(engine, uri, *shard, &plan).boxed().await?,
                manifest: manifest.clone(),
                plan,
                refusal,
                look,
            }),
        }
    }
    Ok((stuck, against))
}

async fn open(
    engine: &Engine,
    uri: &str,
    shard: Uuid,
    plan: &Plan,
) -> Result<Vec<Generation>, Fault> {
    let mut opened = Vec::new();
    for sstable in &plan.listed {
        opened.push(Generation::open(engine, uri, shard, sstable).await?);
    }
    Ok(opened)
}

impl Stuck {
    async fn told(&self, request: &AcceptShards) -> Result<AcceptedShard, Fault> {
        let sizes = self.opened.iter().map(Generation::bytes);
        let compared = match request.leave_out {
            true => None,
            false => compare::with_base(&self.look.base, &self.opened).await?,
        };
        Ok(AcceptedShard {
            shard: self.look.shard,
            code: self.refusal.code,
            mark_before: self.look.mark,
            mark: self.plan.mark,
            remembered: self.remembered,
            generations: self.plan.listed.len() as i64,
            rows: self.rows(),
            bytes: crate::shard::sum_known(sizes),
            sentences: words::sentences(self, request.leave_out, compared.as_ref()),
        })
    }

    /// At most: repeated keys included.
    fn rows(&self) -> i64 {
        self.opened.iter().map(|one| one.size.rows).sum()
    }

    /// Without the word about what could be done.
    fn cause(&self) -> &str {
        let sentence = self.refusal.sentence.as_str();
        sentence.strip_suffix(DECIDE).unwrap_or(sentence)
    }
}

/// What the operator looks at, in a word that another look can be compared by.
fn seen(request: &AcceptShards, fresh: &Fresh<'_>, stuck: &[Stuck]) -> String {
    let head = fresh.base.manifest_location();
    let etag = head.e_tag.as_deref().unwrap_or_default();
    let mut text = format!("{} {etag} {}", head.version, request.leave_out);
    for one in stuck {
        let manifest = &one.manifest;
        text += &format!(
            "\n{} {} {} {} {} {} {} {:?}",
            one.look.shard,
            one.refusal.code,
            one.look.mark,
            one.remembered,
            manifest.version,
            manifest.etag,
            manifest.content.current_generation,
            manifest.content.sstables,
        );
    }
    Uuid::new_v5(&Uuid::NAMESPACE_URL, text.as_bytes()).to_string()
}
