//! Old versions of an experiment. Their history is the user's: they go only where
//! a policy says so.

use std::sync::Arc;

use bytes::Bytes;
use chrono::{DateTime, Utc};
use futures::FutureExt;
use lance::Dataset;
use lance::dataset::cleanup::{CleanupPolicy, CleanupPolicyBuilder, RemovalStats};
use serde::{Deserialize, Serialize};

use crate::call::Reply;
use crate::clock;
use crate::engine::Engine;
use crate::error::{Class, Fault};
use crate::fresh;
use crate::maintain;
use crate::remote::Remote;

#[derive(Deserialize)]
pub struct CleanupDataset {
    uri: String,
    older_than_ms: i64,
}

/// See `lance.CleanedVersions`.
#[derive(Clone, Debug, Default, Serialize)]
pub struct CleanedVersions {
    removed: i64,
    bytes: i64,
    held: Vec<Held>,
}

/// See `lance.HeldVersion`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Held {
    by: String,
    version: u64,
}

/// See README.md.
pub async fn cleanup_dataset(
    engine: Arc<Engine>,
    request: CleanupDataset,
    _: Bytes,
) -> Result<Reply, Fault> {
    let uri = request.uri.as_str();
    maintain::answer(uri, async {
        cut_off(clock::now(), request.older_than_ms)?;
        let base = fresh::open(&engine, uri).await?;
        let now = clock::for_cleanup(&Remote::of(&engine, uri).await?).await?;
        let before = cut_off(now, request.older_than_ms)?;
        let held = held(&base, before).boxed().await?;
        let removed = Box::pin(base.cleanup_with_policy(policy(before))).await?;
        Ok(cleaned(&removed, held))
    })
    .await
}

/// What a cleanup would remove. Nothing is.
pub async fn preview(base: &Dataset, older_than_ms: i64) -> Result<CleanedVersions, Fault> {
    if older_than_ms <= 0 {
        return Ok(CleanedVersions::default());
    }
    let before = cut_off(clock::now(), older_than_ms)?;
    let held = held(base, before).boxed().await?;
    let would = Box::pin(async { base.cleanup(policy(before)).explain().await }).await?;
    Ok(cleaned(&would.stats, held))
}

fn cleaned(stats: &RemovalStats, held: Vec<Held>) -> CleanedVersions {
    CleanedVersions {
        removed: stats.old_versions as i64,
        bytes: stats.bytes_removed as i64,
        held,
    }
}

fn cut_off(now: i64, older_than_ms: i64) -> Result<DateTime<Utc>, Fault> {
    // 0 means "no cleanup" everywhere else; here it would mean "all of them".
    if older_than_ms < 1 {
        return Err(Fault::new(
            Class::Invalid,
            format!("older_than_ms is {older_than_ms}, it must be at least 1"),
        ));
    }
    DateTime::from_timestamp_millis(now.saturating_sub(older_than_ms)).ok_or_else(|| {
        Fault::new(
            Class::Invalid,
            format!("older_than_ms is too much: {older_than_ms}"),
        )
    })
}

/// Files that nobody can prove to be unused stay for Lance's seven days. What a
/// branch needs stays as well, and its own versions are left alone.
fn policy(before: DateTime<Utc>) -> CleanupPolicy {
    CleanupPolicyBuilder::default()
        .before_timestamp(before)
        .delete_unverified(false)
        .clean_referenced_branches(false)
        .error_if_tagged_old_versions(false)
        .build()
}

/// Versions that would go if no tag or branch held them.
async fn held(base: &Dataset, before: DateTime<Utc>) -> Result<Vec<Held>, Fault> {
    let mut named = Vec::new();
    for (name, tag) in base.tags().list().await? {
        // A tag of a branch holds that branch's versions.
        if is_main(tag.branch.as_deref()) {
            named.push((format!("tag {name}"), tag.version));
        }
    }
    for (name, branch) in base.branches().list().await? {
        if is_main(branch.parent_branch.as_deref()) {
            named.push((format!("branch {name}"), branch.parent_version));
        }
    }
    named.sort_unstable();
    let mut held = Vec::new();
    for (by, version) in named {
        if version < base.version_id() && is_older(base, version, before).await? {
            held.push(Held { by, version });
        }
    }
    Ok(held)
}

async fn is_older(base: &Dataset, version: u64, before: DateTime<Utc>) -> Result<bool, Fault> {
    match base.checkout_version(version).boxed().await {
        Ok(old) => Ok(old.manifest().timestamp() < before),
        Err(error) => match Fault::from(error) {
            // A tag that points at nothing holds nothing.
            fault if fault.class == Class::Gone => Ok(false),
            fault => Err(fault),
        },
    }
}

fn is_main(branch: Option<&str>) -> bool {
    branch.is_none_or(|name| name == "main")
}
