//! The base table: its head, its size, its names. From metadata only.

use futures::{StreamExt, TryStreamExt};
use lance::Dataset;
use lance::index::DatasetIndexExt;
use lance_index::mem_wal::{CompactedSsTable, MEM_WAL_INDEX_NAME};
use lance_table::format::{Fragment, IndexMetadata};
use lance_table::system_index::mem_wal::load_mem_wal_index_details;
use uuid::Uuid;

use crate::engine::Engine;
use crate::error::{Class, Fault};
use crate::fingerprint::{Naming, base_manifest, clean_etag, same_etag};
use crate::local;
use crate::remote::Remote;

/// Prefix of the indexes that are Lance's own book-keeping.
const SYSTEM_INDEX: &str = "__lance_";
/// Fragments whose files are opened at once, where the manifest lacks numbers.
const OPENS_AT_ONCE: usize = 8;

/// The head of a base table.
#[derive(Clone, Debug)]
pub struct Head {
    pub version: u64,
    pub etag: String,
    pub naming: Naming,
    pub gaps: bool,
    /// Bytes of the manifest, where known.
    size: Option<u64>,
}

/// Finds the head: locally one readdir and one stat, else one LIST. With an
/// external manifest store that store is asked.
pub async fn head(engine: &Engine, remote: &Remote, uri: &str) -> Result<Head, Fault> {
    if uri.starts_with("s3+ddb") {
        return external_head(engine, remote, uri).await;
    }
    if remote.store.is_local() {
        return local_head(engine, remote).await;
    }
    let (versions, object) = remote.versions().await?;
    Ok(Head {
        version: versions.head,
        etag: clean_etag(object.e_tag.as_deref().unwrap_or_default()),
        naming: versions.naming,
        gaps: versions.gaps(),
        size: Some(object.size),
    })
}

async fn local_head(engine: &Engine, remote: &Remote) -> Result<Head, Fault> {
    local::on_disk(engine, &remote.base, |disk| {
        let versions = disk.versions()?;
        let manifest = base_manifest(disk.base, versions.naming, versions.head);
        let file = disk.stat(&manifest)?;
        let file = file.ok_or_else(|| vanished(versions.head))?;
        Ok(Head {
            version: versions.head,
            etag: clean_etag(&file.etag),
            naming: versions.naming,
            gaps: versions.gaps(),
            size: Some(file.size),
        })
    })
    .await
}

async fn external_head(engine: &Engine, remote: &Remote, uri: &str) -> Result<Head, Fault> {
    let handler = engine.commit_handler(uri).await?;
    let found = handler
        .resolve_latest_location(&remote.base, &remote.store)
        .await?;
    Ok(Head {
        version: found.version,
        etag: clean_etag(found.e_tag.as_deref().unwrap_or_default()),
        naming: found.naming_scheme.into(),
        // Nobody asks for the next version of such a table by its name.
        gaps: false,
        size: found.size,
    })
}

/// Opens the table at its head. Class gone when that vanished or was replaced in
/// between, which is worth another try.
pub async fn open(engine: &Engine, uri: &str, head: &Head) -> Result<Dataset, Fault> {
    // What a crash leaves of a file. Lance asks for a range of it, which stores
    // refuse in words of their own.
    if head.size == Some(0) {
        let version = head.version;
        let message = format!("the manifest of version {version} is empty");
        return Err(Fault::new(Class::Corrupt, message));
    }
    let dataset = engine.open(uri, Some(head.version)).await?;
    let seen = dataset.manifest_location().e_tag.as_deref();
    if !same_etag(&head.etag, seen.unwrap_or_default()) {
        return Err(vanished(head.version));
    }
    Ok(dataset)
}

fn vanished(version: u64) -> Fault {
    Fault::new(
        Class::Gone,
        format!("version {version} was removed or replaced while it was looked at"),
    )
}

/// How big a table is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Size {
    pub fragments: i64,
    /// Fragments with fewer live rows than asked for.
    pub small_fragments: i64,
    /// Live rows.
    pub rows: i64,
    pub deleted_rows: i64,
    /// Of the data files; -1: some file's size is not in the manifest.
    pub bytes: i64,
}

impl Size {
    /// Adds up the manifest's numbers. Files are opened only for fragments whose
    /// numbers it lacks.
    pub async fn of(dataset: &Dataset, target_rows: i64) -> Result<Self, Fault> {
        // Very old writers put wrong row counts; Lance doesn't trust them either.
        let trusted = dataset.manifest().writer_version.is_some();
        let mut size = Self::default();
        let mut unknown = Vec::new();
        for fragment in dataset.get_fragments() {
            size.add_bytes(fragment.metadata());
            match counted(fragment.metadata()).filter(|_| trusted) {
                Some(rows) => size.add_rows(rows, target_rows),
                None => unknown.push(fragment),
            }
        }
        let opened: Vec<Rows> = futures::stream::iter(unknown)
            .map(|fragment| async move {
                let deleted = fragment.count_deletions().await? as i64;
                let live = fragment.count_rows(None).await? as i64;
                Ok::<_, Fault>(Rows { live, deleted })
            })
            .buffer_unordered(OPENS_AT_ONCE)
            .try_collect()
            .await?;
        for rows in opened {
            size.add_rows(rows, target_rows);
        }
        Ok(size)
    }

    fn add_rows(&mut self, rows: Rows, target_rows: i64) {
        self.fragments += 1;
        self.small_fragments += i64::from(rows.live < target_rows);
        self.rows += rows.live;
        self.deleted_rows += rows.deleted;
    }

    fn add_bytes(&mut self, fragment: &Fragment) {
        for file in fragment.referenced_lance_files() {
            match file.file_size_bytes.get() {
                Some(bytes) if self.bytes >= 0 => self.bytes += bytes.get() as i64,
                _ => self.bytes = -1,
            }
        }
    }
}

struct Rows {
    live: i64,
    deleted: i64,
}

/// The rows of a fragment as the manifest has them.
fn counted(fragment: &Fragment) -> Option<Rows> {
    if fragment.files.is_empty() {
        return None;
    }
    let physical = fragment.physical_rows?;
    let live = fragment.num_rows()?;
    Some(Rows {
        live: live as i64,
        deleted: physical.saturating_sub(live) as i64,
    })
}

/// The table's indexes: the user's by name, and MemWAL's marks.
#[derive(Clone, Debug, Default)]
pub struct Indexes {
    /// Sorted.
    pub names: Vec<String>,
    marks: Vec<CompactedSsTable>,
}

impl Indexes {
    pub async fn of(dataset: &Dataset) -> Result<Self, Fault> {
        if dataset.manifest().index_section.is_none() {
            return Ok(Self::default());
        }
        let loaded = dataset.load_indices().await?;
        let mut names: Vec<String> = loaded
            .iter()
            .map(|index| index.name.clone())
            .filter(|name| !name.starts_with(SYSTEM_INDEX))
            .collect();
        names.sort_unstable();
        // One index may have several segments.
        names.dedup();
        Ok(Self {
            names,
            marks: marks(&loaded)?,
        })
    }

    /// The last generation of a shard that is in the base already; 0: none.
    pub fn mark(&self, shard: &Uuid) -> u64 {
        let marks = self.marks.iter().filter(|mark| mark.shard_id == *shard);
        marks.map(|mark| mark.generation).max().unwrap_or(0)
    }
}

fn marks(indexes: &[IndexMetadata]) -> Result<Vec<CompactedSsTable>, Fault> {
    match indexes.iter().find(|one| one.name == MEM_WAL_INDEX_NAME) {
        Some(index) => Ok(load_mem_wal_index_details(index.clone())?.compacted_sstables),
        None => Ok(Vec::new()),
    }
}

/// Names of tags and branches, each sorted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Refs {
    pub tags: Vec<String>,
    pub branches: Vec<String>,
}

impl Refs {
    /// 1 LIST: the names are all we want, not what the files say.
    pub async fn of(remote: &Remote) -> Result<Self, Fault> {
        let folder = remote.base.clone().join("_refs");
        let mut listed = remote.store.inner.list(Some(&folder));
        let mut refs = Self::default();
        while let Some(object) = listed.try_next().await? {
            let mut parts = object.location.parts().rev();
            let (file, kind) = (parts.next(), parts.next());
            let Some(name) = file.as_ref().and_then(|f| f.as_ref().strip_suffix(".json")) else {
                continue;
            };
            match kind.as_ref().map(|kind| kind.as_ref()) {
                Some("tags") => refs.tags.push(name.to_owned()),
                // Lance writes a slash in a branch's name as %2F.
                Some("branches") => refs.branches.push(name.replace("%2F", "/")),
                _ => {}
            }
        }
        refs.tags.sort_unstable();
        refs.branches.sort_unstable();
        Ok(refs)
    }

    pub fn any(&self) -> bool {
        !self.tags.is_empty() || !self.branches.is_empty()
    }
}
