//! Many experiments, fast.

use std::path::{Path as FilePath, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use futures::{StreamExt, TryStreamExt};
use lance_io::local::to_local_path;
use serde::Deserialize;
use serde_json::json;
use uuid::Uuid;

use super::Spec;
use super::dataset::{self, Facts};
use crate::call::Reply;
use crate::engine::Engine;
use crate::error::{Class, Fault};

#[derive(Deserialize)]
pub struct MakeFleet {
    items: Vec<Item>,
    templates: Vec<Spec>,
    dir: Option<PathBuf>,
    /// 0 or absent: 8.
    #[serde(default)]
    concurrency: usize,
}

#[derive(Clone, Deserialize)]
struct Item {
    uri: String,
    template: usize,
}

/// See `maker`. Stops at the first that can't be made.
pub async fn make_fleet(engine: Arc<Engine>, request: MakeFleet, _: Bytes) -> Result<Reply, Fault> {
    check(&request)?;
    let at_once = match request.concurrency {
        0 => 8,
        at_once => at_once,
    };
    let scratch = Scratch::new(request.dir);
    let templates = make_templates(&engine, &scratch, &request.templates, at_once).await?;
    let made = request.items.len();
    futures::stream::iter(request.items.into_iter().enumerate())
        .map(|(number, item)| {
            let spec = request.templates[item.template].clone();
            let template = scratch.template(item.template);
            let engine = engine.clone();
            // Its own task: made experiments keep both processors busy.
            tokio::spawn(async move {
                make_one(&engine, &item.uri, spec, number, template)
                    .await
                    .map_err(|fault| fault.at(&item.uri))
            })
        })
        .buffer_unordered(at_once)
        .map(|ended| ended.unwrap_or_else(|error| Err(Fault::from_join(error))))
        .try_collect::<()>()
        .await?;
    Ok(Reply::json(json!({ "made": made, "templates": templates })))
}

fn check(request: &MakeFleet) -> Result<(), Fault> {
    let templates = request.templates.len();
    match request.items.iter().find(|item| item.template >= templates) {
        Some(item) => Err(Fault::new(
            Class::Invalid,
            format!("there is no template {}", item.template),
        )
        .at(&item.uri)),
        None => Ok(()),
    }
}

async fn make_templates(
    engine: &Arc<Engine>,
    scratch: &Scratch,
    specs: &[Spec],
    at_once: usize,
) -> Result<Vec<Facts>, Fault> {
    futures::stream::iter(specs.iter().cloned().enumerate())
        .map(|(number, spec)| {
            let (engine, uri) = (engine.clone(), scratch.template(number));
            async move {
                let uri = uri.to_string_lossy();
                Box::pin(dataset::make(&engine, &uri, &spec)).await
            }
        })
        .buffered(at_once)
        .try_collect()
        .await
}

/// A copy on local disk; elsewhere a server-side copy would cost as many
/// requests as making it, and give every experiment the same rows.
async fn make_one(
    engine: &Engine,
    uri: &str,
    spec: Spec,
    number: usize,
    template: PathBuf,
) -> Result<(), Fault> {
    let (store, path) = engine.store(uri).await?;
    if !store.has_direct_local_paths() {
        let seed = spec.seed.wrapping_add(number as u64);
        dataset::make(engine, uri, &Spec { seed, ..spec }).await?;
        return Ok(());
    }
    let target = PathBuf::from(to_local_path(&path));
    let keep_times = spec.age_ms > 0;
    tokio::task::spawn_blocking(move || copy_new(&template, &target, keep_times))
        .await
        .map_err(Fault::from_join)?
}

/// Blocks.
fn copy_new(template: &FilePath, target: &FilePath, keep_times: bool) -> Result<(), Fault> {
    if let Some(parent) = target.parent() {
        std::fs::create_dir_all(parent)?;
    }
    copy_folder(template, target, keep_times)
}

/// Fails where `target` exists. Real copies: files of one experiment must not
/// change with those of another.
fn copy_folder(source: &FilePath, target: &FilePath, keep_times: bool) -> Result<(), Fault> {
    std::fs::create_dir(target)?;
    for entry in std::fs::read_dir(source)? {
        let entry = entry?;
        let (from, to) = (entry.path(), target.join(entry.file_name()));
        if entry.file_type()?.is_dir() {
            copy_folder(&from, &to, keep_times)?;
        } else {
            std::fs::copy(&from, &to)?;
            if keep_times {
                copy_time(&from, &to)?;
            }
        }
    }
    if keep_times {
        copy_time(source, target)?;
    }
    Ok(())
}

fn copy_time(from: &FilePath, to: &FilePath) -> Result<(), Fault> {
    let time = std::fs::metadata(from)?.modified()?;
    std::fs::File::open(to)?.set_modified(time)?;
    Ok(())
}

/// A folder for templates that goes when it is dropped.
struct Scratch(PathBuf);

impl Scratch {
    fn new(dir: Option<PathBuf>) -> Self {
        let dir = dir.unwrap_or_else(std::env::temp_dir);
        Self(dir.join(format!(".make-fleet-{}", Uuid::new_v4())))
    }

    fn template(&self, number: usize) -> PathBuf {
        self.0.join(number.to_string())
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Nothing was made there, or it is litter that harms nobody.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
