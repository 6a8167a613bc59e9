//! Folders of generations that were drained: deleted when nothing names them any
//! more and readers had time to let go of them.

mod decide;
mod folder;

use std::collections::HashSet;
use std::sync::Arc;

use bytes::Bytes;
use futures::FutureExt;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use self::decide::{Facts, Verdict, drained_at};
use self::folder::Folder;
use crate::call::Reply;
use crate::clock;
use crate::engine::Engine;
use crate::error::{Class, Fault};
use crate::fresh::Fresh;
use crate::maintain;
use crate::shard::Latest;
use crate::tail::{Drains, drains};

#[derive(Deserialize)]
pub struct SweepGenerations {
    uri: String,
    grace_ms: i64,
    unknown_grace_ms: i64,
}

/// See `lance.Swept`.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Swept {
    deleted: Vec<SweptFolder>,
    kept: Vec<SweptFolder>,
    bytes: i64,
}

/// See `lance.SweptFolder`.
#[derive(Clone, Debug, Serialize)]
struct SweptFolder {
    shard: Uuid,
    path: String,
    bytes: i64,
    #[serde(skip_serializing_if = "String::is_empty")]
    why: String,
    #[serde(skip_serializing_if = "is_zero")]
    due: i64,
}

fn is_zero(number: &i64) -> bool {
    *number == 0
}

/// See README.md.
pub async fn sweep_generations(
    engine: Arc<Engine>,
    request: SweepGenerations,
    _: Bytes,
) -> Result<Reply, Fault> {
    let uri = request.uri.as_str();
    maintain::answer(uri, async {
        if request.grace_ms < 0 || request.unknown_grace_ms < 0 {
            return Err(Fault::new(Class::Invalid, "a grace is negative"));
        }
        let fresh = Fresh::open(&engine, uri).await?;
        let mut swept = Swept::default();
        for (shard, manifest) in &fresh.shards {
            let one = Shard {
                fresh: &fresh,
                id: *shard,
                request: &request,
            };
            one.sweep(manifest.as_ref(), &mut swept).boxed().await?;
        }
        Ok(swept)
    })
    .await
}

/// One shard under the broom.
struct Shard<'a> {
    fresh: &'a Fresh<'a>,
    id: Uuid,
    request: &'a SweepGenerations,
}

impl Shard<'_> {
    async fn sweep(&self, manifest: Option<&Latest>, swept: &mut Swept) -> Result<(), Fault> {
        // Who lost its manifest may want all of them.
        let Some(manifest) = manifest else {
            return Ok(());
        };
        let mut folders = folder::list(&self.fresh.remote, &self.id).await?;
        let named: HashSet<&str> = names(manifest).collect();
        folders.retain(|folder| !named.contains(folder.name.as_str()));
        if folders.is_empty() {
            return Ok(());
        }
        let mut facts = self.facts(manifest, &folders).await?;
        if folders.iter().any(|folder| facts.lets_go(folder)) {
            facts.now = clock::at_most_now(&self.fresh.remote).await?;
        }
        for folder in folders {
            self.decide(folder, &facts, swept).boxed().await?;
        }
        Ok(())
    }

    async fn facts(&self, manifest: &Latest, folders: &[Folder]) -> Result<Facts, Fault> {
        let place = self.fresh.place(self.id, Some(manifest));
        let tail = place.targets().boxed().await?;
        let oldest = folders.iter().map(|folder| folder.newest_time).min();
        let past: Drains = drains(
            &self.fresh.reader(),
            self.id,
            manifest,
            0,
            oldest.unwrap_or(i64::MIN),
        )
        .boxed()
        .await?;
        Ok(Facts {
            current_generation: manifest.content.current_generation,
            mark: self.fresh.indexes.mark(&self.id),
            tail,
            past,
            now: clock::now(),
            grace: self.request.grace_ms,
            unknown_grace: self.request.unknown_grace_ms,
        })
    }

    async fn decide(&self, folder: Folder, facts: &Facts, swept: &mut Swept) -> Result<(), Fault> {
        let mut said = SweptFolder {
            shard: self.id,
            path: folder.name.clone(),
            bytes: folder.bytes,
            why: String::new(),
            due: 0,
        };
        let verdict = match self.referred_to(&folder) {
            Some(why) => Verdict::keep(why),
            None => facts.judge(&folder, drained_at(&facts.past, &folder)),
        };
        let verdict = match verdict {
            Verdict::Delete => self.last_look(&folder).await?,
            kept => kept,
        };
        match verdict {
            Verdict::Delete => {
                folder::delete(&self.fresh.remote, &folder).await?;
                swept.bytes += folder.bytes;
                swept.deleted.push(said);
            }
            Verdict::Keep { why, due } => {
                (said.why, said.due) = (why, due);
                swept.kept.push(said);
            }
        }
        Ok(())
    }

    /// What of the base table lies in the folder, or may.
    fn referred_to(&self, folder: &Folder) -> Option<String> {
        let base = &self.fresh.base;
        if base
            .schema()
            .fields_pre_order()
            .any(|field| field.is_blob())
        {
            return Some("the table has blob columns, whose bytes may lie here".to_owned());
        }
        let manifest = base.manifest();
        let mut places: Vec<&str> = manifest
            .base_paths
            .values()
            .map(|one| one.path.as_str())
            .collect();
        for fragment in manifest.fragments.iter() {
            places.extend(
                fragment
                    .referenced_lance_files()
                    .map(|file| file.path.as_str()),
            );
        }
        let named = places.iter().any(|place| place.contains(&folder.name));
        named.then(|| "the base table refers to it".to_owned())
    }

    /// The newest manifest decides, read again before each folder.
    async fn last_look(&self, folder: &Folder) -> Result<Verdict, Fault> {
        let latest = self.fresh.reader().latest_manifest(self.id).await?;
        Ok(match latest {
            None => Verdict::keep("the shard has lost its manifest"),
            Some(latest) if names(&latest).any(|name| name == folder.name) => {
                Verdict::keep("the shard's manifest names it again")
            }
            Some(latest) if folder.generation >= latest.content.current_generation => {
                Verdict::keep("the shard has begun anew")
            }
            Some(_) => Verdict::Delete,
        })
    }
}

fn names(manifest: &Latest) -> impl Iterator<Item = &str> {
    manifest
        .content
        .sstables
        .iter()
        .map(|one| one.path.as_str())
}
