//! Damaged entries of the log and damaged generations: they are said to be corrupt
//! at once, whoever reads them, and nobody leaves anything behind.

use std::path::{Path, PathBuf};

use serde_json::json;

use super::merge::files;
use super::*;
use crate::error::Class;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Damage {
    Truncated,
    Empty,
    Garbage,
    Folder,
}
use Damage::{Empty, Folder, Garbage, Truncated};

const ALL: [Damage; 4] = [Truncated, Empty, Garbage, Folder];

impl Damage {
    fn to(self, file: &Path) {
        let bytes = std::fs::read(file).unwrap();
        match self {
            Truncated => std::fs::write(file, &bytes[..bytes.len() * 2 / 3]).unwrap(),
            Empty => std::fs::write(file, b"").unwrap(),
            Garbage => std::fs::write(file, vec![0x5a; bytes.len()]).unwrap(),
            Folder => {
                std::fs::remove_file(file).unwrap();
                std::fs::create_dir(file).unwrap();
            }
        }
    }
}

/// The class of what an operation answers; "fine" if it is no error.
async fn class_of(engine: &Arc<Engine>, op: &str, request: Value) -> &'static str {
    match ask(engine, op, request).await {
        Ok(_) => "fine",
        Err(fault) => {
            assert_ne!(fault.class, Class::Internal, "{op}: {fault}");
            fault.class.name()
        }
    }
}

/// Every operation that reads a table's log, on disk and as objects.
async fn classes(engine: &Arc<Engine>, table: &Table, shard: Uuid) -> Vec<(String, &'static str)> {
    let mut classes = Vec::new();
    for seen in BOTH {
        let uri = table.uri(seen);
        let one = json!({ "uri": uri, "shard": shard });
        for (op, request) in [
            ("classify_tail", one.clone()),
            ("verify", one.clone()),
            ("preview", one.clone()),
            ("accept_shards", json!({ "uri": uri, "dry_run": true })),
            (
                "seal_shard",
                json!({ "uri": uri, "shard": shard, "dry_run": true, "allow_unknown": true }),
            ),
            (
                "sweep_generations",
                json!({ "uri": uri, "grace_ms": 1, "unknown_grace_ms": 1 }),
            ),
            ("merge_wal", one),
        ] {
            classes.push((
                format!("{op} {seen:?}"),
                class_of(engine, op, request).await,
            ));
        }
        let observed =
            observe_with(engine, json!({ "uri": uri, "target_rows": 100 }), json!({})).await;
        let class = observed["error"]["class"].as_str().unwrap_or("fine");
        let known = ["fine", "corrupt", "gone"]
            .into_iter()
            .find(|one| *one == class);
        classes.push((format!("observe {seen:?}"), known.unwrap_or("another")));
    }
    classes
}

#[tokio::test]
async fn a_damaged_entry_is_corrupt_at_once_and_sealing_leaves_nothing_behind() {
    for damage in ALL {
        let (engine, table, shard) = (engine(), Table::keyed().await, Uuid::new_v4());
        table.strand(shard, 200, 300).await;
        table.strand(shard, 600, 3).await;
        let entry = (1..table.wal_end(shard))
            .map(|position| table.wal_file(shard, position))
            .max_by_key(|file| file.metadata().unwrap().len())
            .unwrap();
        damage.to(&entry);
        let before = files(&table);
        let request = json!({ "uri": table.path(), "shard": shard, "silent_ms": 0 });
        {
            let tails = ask(&engine, "classify_tail", request.clone())
                .await
                .unwrap();
            let tail = &tails["shards"][0];
            assert_eq!(tail["damaged"], json!(1), "{damage:?}: {tail}");
            let words = tail["sentence"].as_str().unwrap();
            assert!(words.contains("can't be read"), "{damage:?}: {words}");
            let refused = ask(&engine, "seal_shard", request.clone()).await.unwrap();
            let code = &refused["refused"]["code"];
            assert_eq!(code, &json!("unknown_tail"), "{damage:?}: {refused}");
        }
        for _ in 0..2 {
            let mut request = request.clone();
            request["allow_unknown"] = json!(true);
            let fault = ask(&engine, "seal_shard", request).await.unwrap_err();
            assert_eq!(fault.class, Class::Corrupt, "{damage:?}: {fault}");
        }
        assert_eq!(
            files(&table),
            before,
            "{damage:?}: something was left behind"
        );
        for (what, class) in classes(&engine, &table, shard).await {
            assert!(
                ["fine", "corrupt"].contains(&class),
                "{damage:?}: {what}: {class}"
            );
        }
        assert_eq!(
            files(&table),
            before,
            "{damage:?}: something was left behind"
        );
    }
}

fn generation_files(table: &Table, shard: Uuid) -> Vec<PathBuf> {
    let all = files(table).into_keys().map(PathBuf::from);
    let own = all.filter(|file| file.starts_with(table.shard_folder(shard)));
    let inside = |file: &PathBuf| file.to_string_lossy().contains("_gen_1/");
    own.filter(inside).collect()
}

/// Whatever file of a pending generation is damaged, nothing of it is merged, and
/// nobody takes it for a passing trouble.
#[tokio::test]
async fn a_damaged_generation_is_corrupt_and_stays_listed() {
    let names = ["data", "_versions"];
    for (damage, name) in ALL.iter().flat_map(|one| names.map(|name| (*one, name))) {
        let (engine, table, shard) = (engine(), Table::keyed().await, Uuid::new_v4());
        table.flush(shard, 100, 300).await;
        let inside = format!("/{name}/");
        let all = generation_files(&table, shard);
        let file = all.iter().find(|file| {
            let file = file.to_string_lossy();
            file.contains(&inside) && !file.ends_with(".json")
        });
        damage.to(file.unwrap_or_else(|| panic!("{name}: {all:?}")));
        let before = table.content().await;
        let request = json!({ "uri": table.path(), "shard": shard, "property": "p" });
        let fault = ask(&engine, "merge_wal", request).await.unwrap_err();
        let classes_of_it = [Class::Corrupt, Class::Gone];
        assert!(
            classes_of_it.contains(&fault.class),
            "{damage:?} {name}: {fault}"
        );
        assert_eq!(table.content().await, before);
        assert_eq!(table.manifest(shard).await.sstables.len(), 1);
        for (what, class) in classes(&engine, &table, shard).await {
            let allowed = ["fine", "corrupt", "gone", "conflict"];
            assert!(
                allowed.contains(&class),
                "{damage:?} {name}: {what}: {class}"
            );
        }
    }
}
