//! What became of the rows in WAL entries past the flush cursors. The cursor may
//! lag behind what was flushed, and a writer may have died before it flushed: the
//! entries look alike, and replaying the first kind would bring back what was
//! deleted and set back what was updated.

mod content;
mod entry;
mod examine;
mod flushed;
mod history;
mod judge;
mod lookup;
mod order;
mod shape;

use std::sync::Arc;

use bytes::Bytes;
use futures::FutureExt;
use lance::Dataset;
use lance_index::mem_wal::{ShardManifest, SsTable};
use serde::{Deserialize, Serialize};
use serde_json::json;
use uuid::Uuid;

use crate::call::Reply;
use crate::engine::Engine;
use crate::error::Fault;
use crate::fresh::Fresh;
use crate::maintain::{self, count};
use crate::remote::Remote;
use crate::shard::Shards;

pub use content::{Content, key_digests};
pub use examine::{Examined, Place, Targets};
#[cfg(test)]
pub use history::Drain;
use history::NAMED_MAX;
pub use history::{
    Checked, DECISION, Decision, Drains, PROPERTY, Record, decision, drains, erased, made_anew,
    record,
};
pub use judge::{Ground, Judged, State, covered_through as covered_by};
pub use lookup::contents;
pub use shape::Shape;

const SEAL_DECIDES: &str = "seal --allow-unknown replays what can be read: rows that the base has \
                            come twice where it has no key, and what was deleted or updated since \
                            comes back";
/// Entries that an answer lists.
const LISTED_MAX: usize = 32;

#[derive(Deserialize)]
pub struct ClassifyTail {
    uri: String,
}

/// See `lance.Tail`.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Tail {
    pub shard: Uuid,
    pub cursor: u64,
    pub next: u64,
    pub entries: i64,
    pub contained: i64,
    pub in_base: i64,
    pub superseded: i64,
    pub stranded: i64,
    pub unknown: i64,
    pub stranded_rows: i64,
    /// Of the unknown ones: those that can't be read.
    pub damaged: i64,
    pub covered_through: u64,
    /// Of the newest entry with rows, wherever it is.
    pub newest_time: i64,
    /// Of the newest entry at all, or of the manifest.
    pub touched_time: i64,
    pub listed: Vec<Listed>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub sentence: String,
}

/// See `lance.TailEntry`.
#[derive(Clone, Debug, Serialize)]
pub struct Listed {
    pub position: u64,
    pub rows: i64,
    pub time: i64,
    pub state: State,
}

impl From<&Judged> for Listed {
    fn from(one: &Judged) -> Self {
        Self {
            position: one.position,
            rows: one.rows,
            time: one.time,
            state: one.state,
        }
    }
}

/// See README.md.
pub async fn classify_tail(
    engine: Arc<Engine>,
    request: ClassifyTail,
    _: Bytes,
) -> Result<Reply, Fault> {
    let uri = request.uri.as_str();
    maintain::answer(uri, async {
        let fresh = Fresh::open(&engine, uri).await?;
        Ok(json!({ "shards": tails(&fresh).await? }))
    })
    .await
}

/// The tail of every shard.
pub async fn tails(fresh: &Fresh<'_>) -> Result<Vec<Tail>, Fault> {
    let mut tails = Vec::new();
    for (shard, manifest) in &fresh.shards {
        let place = fresh.place(*shard, manifest.as_ref());
        tails.push(Tail::of(*shard, &place.examine().boxed().await?));
    }
    Ok(tails)
}

impl Tail {
    pub fn of(shard: Uuid, examined: &Examined) -> Self {
        let mut tail = Self {
            shard,
            cursor: examined.cursor,
            next: examined.next,
            newest_time: examined.newest_time,
            touched_time: examined.touched_time,
            covered_through: judge::covered_through(&examined.judged, examined.cursor, |_| true),
            ..Self::default()
        };
        for one in &examined.judged {
            tail.add(one);
        }
        let left = examined.left() as i64;
        tail.entries += left;
        tail.unknown += left;
        let (mut listed, fine): (Vec<&Judged>, Vec<&Judged>) =
            examined.judged.iter().partition(|one| !one.state.is_fine());
        listed.extend(fine);
        tail.listed = listed
            .into_iter()
            .take(LISTED_MAX)
            .map(Listed::from)
            .collect();
        tail.sentence = tail.in_words();
        tail
    }

    fn add(&mut self, one: &Judged) {
        self.entries += 1;
        let count = match one.state {
            State::Contained => &mut self.contained,
            State::InBase => &mut self.in_base,
            State::Superseded => &mut self.superseded,
            State::Stranded => &mut self.stranded,
            State::Unknown => &mut self.unknown,
        };
        *count += 1;
        match one.state {
            State::Stranded => self.stranded_rows += one.rows,
            State::Unknown if one.rows < 0 => self.damaged += 1,
            _ => {}
        }
    }

    /// What stands in the way of calling this shard drained; empty: nothing.
    fn in_words(&self) -> String {
        let shard = self.shard;
        let mut parts = Vec::new();
        if self.stranded > 0 {
            parts.push(format!(
                "{} with {} {} stranded: their writer never flushed them",
                count(self.stranded, "WAL entry", "WAL entries"),
                count(self.stranded_rows, "row", "rows"),
                if self.stranded == 1 { "is" } else { "are" },
            ));
        }
        if self.unknown > 0 {
            parts.push(format!(
                "of {} nobody can tell whether the base has or had {}",
                count(self.unknown, "WAL entry", "WAL entries"),
                match self.unknown {
                    1 => "its rows",
                    _ => "their rows",
                },
            ));
        }
        if self.damaged > 0 {
            parts.push(format!(
                "{} can't be read: damaged, or with columns that can't be compared",
                match self.damaged == self.unknown {
                    true => "they".to_owned(),
                    false => format!("{} of them", self.damaged),
                }
            ));
        }
        if self.unknown > self.damaged {
            parts.push(SEAL_DECIDES.to_owned());
        }
        match parts.is_empty() {
            true => String::new(),
            false => format!("shard {shard}: {}", parts.join("; ")),
        }
    }
}

impl State {
    /// Whether nothing is lost when the entry is never read again.
    pub fn is_fine(self) -> bool {
        matches!(self, Self::Contained | Self::InBase | Self::Superseded)
    }
}

/// What a merge that takes `merged` over may put down about the shard's WAL, and
/// how far it may move the flush cursor. `manifest` is the shard's manifest that
/// names the generations, `next` the end of its WAL then, `base` the table, opened
/// after both.
pub async fn covered_through(
    engine: &Engine,
    uri: &str,
    base: &Dataset,
    shard: Uuid,
    manifest: &ShardManifest,
    next: u64,
    merged: &[SsTable],
) -> Result<Checked, Fault> {
    let (store, path) = engine.store(uri).await?;
    let remote = Remote { store, base: path };
    let shards = Shards {
        engine,
        remote: &remote,
        uri,
    };
    // Once more, for the time of its file.
    let latest = shards.read_manifest(shard, manifest.version).await?;
    let mark = crate::base::Indexes::of(base).await?.mark(&shard);
    let place = Place {
        engine,
        remote: &remote,
        uri,
        base,
        shard,
        manifest: Some(&latest),
        next,
        mark,
    };
    let examined = place.examine().boxed().await?;
    let counts = |generation: u64| {
        generation <= mark || merged.iter().any(|one| one.generation == generation)
    };
    Ok(Checked {
        manifest: manifest.version,
        taken: merged
            .iter()
            .map(|one| (one.generation, one.path.clone()))
            .collect(),
        ..checked(&examined, counts)
    })
}

/// What is proven of the entries; the others are left out.
fn checked(examined: &Examined, counts: impl Fn(u64) -> bool) -> Checked {
    let covered = judge::covered_through(&examined.judged, examined.cursor, &counts);
    let mut checked = Checked {
        covered,
        seen: examined.next.saturating_sub(1),
        ..Checked::default()
    };
    let mut before = false;
    for one in examined.judged.iter().filter(|one| one.position > covered) {
        let in_base = one.is_in(&counts);
        match (in_base, checked.proven.last_mut()) {
            // Nothing with rows lies between.
            (true, Some(last)) if before => last.1 = one.position,
            (true, _) => checked.proven.push((one.position, one.position)),
            (false, _) if one.is_in_none() => checked.open.push(one.position),
            (false, _) => {}
        }
        before = in_base;
        if checked.proven.len() + checked.open.len() == NAMED_MAX {
            break;
        }
    }
    checked
}

impl Judged {
    /// Of one that is not in what is merged: whether it is in none of that. Rows
    /// that are found and prove nothing may be its own.
    fn is_in_none(&self) -> bool {
        match self.state {
            // In younger generations.
            State::Contained => true,
            State::Stranded => self.ground == Ground::Absence,
            State::InBase | State::Superseded | State::Unknown => false,
        }
    }
}
