//! Broken, missing and silent datasets, each beside a healthy one.

use serde_json::json;
use uuid::Uuid;

use super::*;

/// Observes and probes a broken dataset between two healthy ones; answers the
/// classes of both errors.
pub async fn classes(engine: &Arc<Engine>, uri: &str, fingerprint: &Value) -> (String, String) {
    let healthy = Table::keyed().await;
    let known = observe(engine, &healthy.path()).await["fingerprint"].clone();
    let target = |uri: &str, fingerprint: &Value| {
        json!({
            "uri": uri,
            "fingerprint": fingerprint,
            "deep": true,
        })
    };
    let targets = json!([
        target(&healthy.path(), &known),
        target(uri, fingerprint),
        target(&healthy.uri(Seen::AsObjects), &known),
    ]);
    let request = json!({ "targets": targets, "concurrency": 2, "timeout_ms": 2000 });
    let observed = ask(engine, "observe", request.clone()).await.unwrap();
    let probed = ask(engine, "probe", request).await.unwrap();
    for beside in [0, 2] {
        let observation = &observed["results"][beside]["observation"];
        assert_eq!(observation["base_rows"], json!(10));
        assert_eq!(probed["results"][beside]["state"], json!("unchanged"));
    }
    let class = |reply: &Value| {
        let error = &reply["results"][1]["error"];
        error["class"].as_str().unwrap_or("none").to_owned()
    };
    (class(&observed), class(&probed))
}

fn head_manifest(table: &Table) -> std::path::PathBuf {
    // The V2 scheme: the newest version has the smallest name.
    let mut files: Vec<_> = std::fs::read_dir(format!("{}/_versions", table.path()))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "manifest")
        })
        .collect();
    files.sort();
    files.remove(0)
}

#[tokio::test]
async fn a_missing_dataset_is_gone() {
    let (engine, table) = (engine(), Table::keyed().await);
    let fingerprint = observe(&engine, &table.path()).await["fingerprint"].clone();
    table.drop_all();
    let (observed, probed) = classes(&engine, &table.uri(Seen::AsDisk), &fingerprint).await;
    assert_eq!((observed.as_str(), probed.as_str()), ("gone", "gone"));
    let uri = table.uri(Seen::AsObjects);
    let (observed, _) = classes(&engine, &uri, &fingerprint).await;
    assert_eq!(observed, "gone");
    // As objects a missing head is a change; the observation tells what it is.
    assert_eq!(moved(&engine, &uri, &fingerprint, DEEP).await, "base etag");
}

#[tokio::test]
async fn a_folder_without_manifests_is_gone() {
    let (engine, table) = (engine(), Table::keyed().await);
    let fingerprint = observe(&engine, &table.path()).await["fingerprint"].clone();
    std::fs::remove_dir_all(format!("{}/_versions", table.path())).unwrap();
    std::fs::create_dir(format!("{}/_versions", table.path())).unwrap();
    let (observed, probed) = classes(&engine, &table.path(), &fingerprint).await;
    assert_eq!((observed.as_str(), probed.as_str()), ("gone", "gone"));
}

#[tokio::test]
async fn a_truncated_manifest_is_corrupt() {
    let engine = engine();
    for seen in BOTH {
        // None of it, part of its header, part of its end.
        for keep in [0, 3, 100] {
            let table = Table::keyed().await;
            let manifest = head_manifest(&table);
            let bytes = std::fs::read(&manifest).unwrap();
            std::fs::write(&manifest, &bytes[..keep]).unwrap();
            let answer = observe_with(&engine, json!({ "uri": table.uri(seen) }), json!({})).await;
            assert_eq!(
                answer["error"]["class"],
                json!("corrupt"),
                "{keep}: {answer}"
            );
        }
    }
}

#[tokio::test]
async fn a_manifest_of_rubbish_is_corrupt() {
    let engine = engine();
    for seen in BOTH {
        let table = Table::keyed().await;
        let manifest = head_manifest(&table);
        let length = std::fs::metadata(&manifest).unwrap().len() as usize;
        std::fs::write(&manifest, vec![0xAB; length]).unwrap();
        let answer = observe_with(&engine, json!({ "uri": table.uri(seen) }), json!({})).await;
        assert_eq!(answer["error"]["class"], json!("corrupt"), "{answer}");
    }
}

#[tokio::test]
async fn a_damaged_old_version_is_a_commit_that_nobody_knows() {
    let (engine, all) = (engine(), json!({ "operations": ["Append", "CreateIndex"] }));
    for seen in BOTH {
        // Empty, cut off, of rubbish, a folder.
        for damage in 0..4 {
            let table = Table::keyed().await;
            for from in [20, 30, 40] {
                table.append(from, 5).await;
            }
            let old = manifest_of(&table, 4);
            let bytes = std::fs::read(&old).unwrap();
            match damage {
                0 => std::fs::write(&old, b"").unwrap(),
                1 => std::fs::write(&old, &bytes[..bytes.len() / 2]).unwrap(),
                2 => std::fs::write(&old, vec![0xAB; bytes.len()]).unwrap(),
                _ => {
                    std::fs::remove_file(&old).unwrap();
                    std::fs::create_dir(&old).unwrap();
                }
            }
            let target = json!({ "uri": table.uri(seen) });
            let answer = observe_with(&engine, target, all.clone()).await;
            assert!(answer["error"].is_null(), "{seen:?} {damage}: {answer}");
            let commits = &answer["observation"]["commits"];
            assert_eq!(commits[0]["operation"], json!("Append"));
            assert_eq!(commits[1]["operation"], json!(""), "{seen:?} {damage}");
            assert_eq!(commits[1]["time"], commits[0]["time"]);
            // A write of unknown kind: the walk ends there.
            assert_eq!(commits.as_array().unwrap().len(), 2);
            assert_eq!(answer["observation"]["base_rows"], json!(25));
        }
    }
}

fn manifest_of(table: &Table, version: u64) -> std::path::PathBuf {
    let name = format!("{:020}.manifest", u64::MAX - version);
    std::path::PathBuf::from(table.path())
        .join("_versions")
        .join(name)
}

#[cfg(unix)]
#[tokio::test]
async fn a_link_that_leads_in_a_circle_is_corrupt_and_one_that_leads_nowhere_gone() {
    let engine = engine();
    for (target, expected) in [("itself", "corrupt"), ("nowhere", "gone")] {
        let table = Table::keyed().await;
        let known = observe(&engine, &table.path()).await["fingerprint"].clone();
        let manifest = head_manifest(&table);
        std::fs::remove_file(&manifest).unwrap();
        let target = match target {
            "itself" => manifest.clone(),
            _ => manifest.with_extension("elsewhere"),
        };
        std::os::unix::fs::symlink(target, &manifest).unwrap();
        let answer = observe_with(&engine, json!({ "uri": table.path() }), json!({})).await;
        assert_eq!(answer["error"]["class"], json!(expected), "{answer}");
        let answer = moved(&engine, &table.path(), &known, LIGHT).await;
        assert_ne!(answer, "unchanged");
    }
}

#[tokio::test]
async fn a_manifest_that_is_a_folder_never_reads_as_healthy() {
    let engine = engine();
    let table = Table::keyed().await;
    let known = observe(&engine, &table.path()).await["fingerprint"].clone();
    // In place of the head, then as its successor.
    let (head, next) = (manifest_of(&table, 2), manifest_of(&table, 3));
    let bytes = std::fs::read(&head).unwrap();
    std::fs::remove_file(&head).unwrap();
    std::fs::create_dir(&head).unwrap();
    for _ in 0..2 {
        let answer = observe_with(&engine, json!({ "uri": table.path() }), json!({})).await;
        assert_eq!(answer["error"]["class"], json!("corrupt"), "{answer}");
        assert_eq!(
            moved(&engine, &table.path(), &known, LIGHT).await,
            "unknown: corrupt"
        );
    }
    std::fs::remove_dir(&head).unwrap();
    std::fs::write(&head, bytes).unwrap();
    std::fs::create_dir(&next).unwrap();
    let answer = observe_with(&engine, json!({ "uri": table.path() }), json!({})).await;
    assert_eq!(answer["error"]["class"], json!("corrupt"), "{answer}");
    assert_eq!(
        moved(&engine, &table.path(), &known, LIGHT).await,
        "base version"
    );
}

#[tokio::test]
async fn a_stray_manifest_of_a_version_that_never_was_is_ignored() {
    let engine = engine();
    for seen in BOTH {
        let table = Table::keyed().await;
        // Counted among the versions it would look like the end of a hole.
        table.append(20, 5).await;
        table.clean(&[1]).await;
        let uri = table.uri(seen);
        let before = observe(&engine, &uri).await["fingerprint"].clone();
        assert_eq!(before["gaps"], json!(false));
        std::fs::write(manifest_of(&table, 0), b"stray").unwrap();
        for ways in [LIGHT, DEEP, LISTING] {
            assert_eq!(moved(&engine, &uri, &before, ways).await, "unchanged");
        }
        assert_eq!(observe(&engine, &uri).await["fingerprint"], before);
    }
}

#[tokio::test]
async fn a_broken_shard_manifest_is_corrupt() {
    let (engine, table, shard) = (engine(), Table::keyed().await, Uuid::new_v4());
    table.flush(shard, 100, 5).await;
    let folder = format!("{}/_mem_wal/{shard}/manifest", table.path());
    for file in std::fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        if path
            .extension()
            .is_some_and(|extension| extension == "binpb")
        {
            std::fs::write(path, [0xFF; 20]).unwrap();
        }
    }
    for seen in BOTH {
        let answer = observe_with(&engine, json!({ "uri": table.uri(seen) }), json!({})).await;
        assert_eq!(answer["error"]["class"], json!("corrupt"), "{answer}");
    }
}

#[tokio::test]
async fn a_generation_that_is_not_there_is_an_error_and_never_zero_rows() {
    let (engine, table, shard) = (engine(), Table::keyed().await, Uuid::new_v4());
    table.flush(shard, 100, 5).await;
    for entry in std::fs::read_dir(format!("{}/_mem_wal/{shard}", table.path())).unwrap() {
        let path = entry.unwrap().path();
        if path.to_str().unwrap().contains("_gen_") {
            std::fs::remove_dir_all(path).unwrap();
        }
    }
    for seen in BOTH {
        let answer = observe_with(&engine, json!({ "uri": table.uri(seen) }), json!({})).await;
        assert_eq!(answer["error"]["class"], json!("gone"), "{answer}");
    }
}

#[tokio::test]
async fn a_uri_nobody_understands_is_invalid() {
    let engine = engine();
    let (observed, probed) = classes(&engine, "nonsense://x/y", &json!({"version": 1})).await;
    assert_eq!((observed.as_str(), probed.as_str()), ("invalid", "invalid"));
}

#[tokio::test]
async fn a_table_never_seen_has_changed() {
    let (engine, table) = (engine(), Table::keyed().await);
    for seen in BOTH {
        let answer = moved(&engine, &table.uri(seen), &json!({"version": 0}), LIGHT).await;
        assert_eq!(answer, "base version");
    }
}
