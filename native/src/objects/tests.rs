use serde_json::Value;
use tempfile::TempDir;

use super::*;

fn request<T: serde::de::DeserializeOwned>(json: Value) -> T {
    serde_json::from_value(json).unwrap()
}

fn engine() -> Arc<Engine> {
    Arc::new(Engine::for_tests())
}

fn folder() -> (TempDir, String) {
    let dir = tempfile::tempdir().unwrap();
    let uri = dir.path().to_str().unwrap().to_owned();
    (dir, uri)
}

fn class<T>(outcome: Result<T, Fault>) -> Option<Class> {
    outcome.err().map(|fault| fault.class)
}

async fn put_at(engine: &Arc<Engine>, uri: &str, body: &str) -> Result<String, Fault> {
    let body = Bytes::copy_from_slice(body.as_bytes());
    let reply = put(engine.clone(), request(json!({ "uri": uri })), body).await?;
    Ok(reply.json["etag"].as_str().unwrap().to_owned())
}

async fn create_at(engine: &Arc<Engine>, uri: &str, body: &str) -> Result<Reply, Fault> {
    let json = json!({ "uri": uri, "if_absent": true });
    put(
        engine.clone(),
        request(json),
        Bytes::copy_from_slice(body.as_bytes()),
    )
    .await
}

async fn get_at(engine: &Arc<Engine>, uri: &str) -> Result<String, Fault> {
    let reply = get(engine.clone(), request(json!({ "uri": uri })), Bytes::new()).await?;
    Ok(String::from_utf8(reply.body).unwrap())
}

async fn listed(engine: &Arc<Engine>, uri: &str, limit: usize) -> Vec<Value> {
    let json = json!({ "uri": uri, "limit": limit });
    let reply = list(engine.clone(), request(json), Bytes::new())
        .await
        .unwrap();
    reply.json["objects"].as_array().unwrap().clone()
}

async fn dirs(engine: &Arc<Engine>, uri: &str) -> Result<Vec<String>, Fault> {
    let reply = list_dirs(engine.clone(), request(json!({ "uri": uri })), Bytes::new()).await?;
    Ok(serde_json::from_value(reply.json["names"].clone()).unwrap())
}

async fn delete_all(engine: &Arc<Engine>, uris: &[&str]) -> Result<u64, Fault> {
    let reply = delete(
        engine.clone(),
        request(json!({ "uris": uris })),
        Bytes::new(),
    )
    .await?;
    Ok(reply.json["deleted"].as_u64().unwrap())
}

/// The same place as a store that is not taken for local disk: it goes through
/// what buckets go through.
fn urls_below(root: &str) -> String {
    format!("file-object-store://{root}")
}

/// Names that something between us and the store might take for syntax.
const HOSTILE: [&str; 10] = [
    "plain",
    "with space",
    "100%",
    "a%20b",
    "a%2Fb",
    "эксперимент-日本",
    "plus+and&equals=",
    "question?mark",
    "{braces}[brackets]",
    "quote\"back\\slash'",
];

#[tokio::test]
async fn hostile_names_survive_a_round_trip_on_local_disk() {
    let (engine, (dir, root)) = (engine(), folder());
    for name in HOSTILE {
        put_at(&engine, &format!("{root}/dir {name}/{name}"), name)
            .await
            .unwrap();
        let there = dir.path().join(format!("dir {name}")).join(name);
        assert_eq!(
            std::fs::read_to_string(there).unwrap(),
            name,
            "taken literally"
        );
    }
    round_trip(&engine, &root).await;
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[tokio::test]
async fn hostile_names_survive_a_round_trip_where_uris_are_urls() {
    let (engine, (dir, root)) = (engine(), folder());
    let root = urls_below(&format!("{root}/fleet root"));
    for name in HOSTILE {
        let key = encode(name);
        put_at(&engine, &format!("{root}/dir%20{key}/{key}"), name)
            .await
            .unwrap();
        let there = dir
            .path()
            .join("fleet root")
            .join(format!("dir {name}"))
            .join(name);
        assert_eq!(
            std::fs::read_to_string(there).unwrap(),
            name,
            "decoded once"
        );
    }
    round_trip(&engine, &root).await;
}

/// Each object below `root` holds its own name, in a folder `dir {name}`.
async fn round_trip(engine: &Arc<Engine>, root: &str) {
    let mut found = BTreeSet::new();
    for object in listed(engine, root, 0).await {
        let uri = object["uri"].as_str().unwrap();
        assert!(uri.starts_with(&format!("{root}/")), "{uri}");
        let body = get_at(engine, uri).await.unwrap();
        assert_eq!(object["size"], body.len());
        found.insert(body);
        assert_eq!(delete_all(engine, &[uri]).await.unwrap(), 1);
        assert_eq!(class(get_at(engine, uri).await), Some(Class::Gone));
    }
    assert_eq!(found, HOSTILE.map(str::to_owned).into());
    assert!(listed(engine, root, 0).await.is_empty());
}

#[tokio::test]
async fn folders_are_listed_by_their_plain_names() {
    let (engine, (_dir, root)) = (engine(), folder());
    for name in HOSTILE {
        put_at(&engine, &format!("{root}/{name}/below/object"), "x")
            .await
            .unwrap();
    }
    put_at(&engine, &format!("{root}/not a folder"), "x")
        .await
        .unwrap();
    let mut want = HOSTILE.map(str::to_owned);
    want.sort();
    for root in [root.clone(), urls_below(&root)] {
        assert_eq!(dirs(&engine, &root).await.unwrap(), want, "{root}");
    }
}

#[cfg(unix)]
#[tokio::test]
async fn a_link_to_a_folder_is_a_folder_and_a_broken_link_is_none() {
    let (engine, (dir, root)) = (engine(), folder());
    let (_elsewhere_dir, elsewhere) = folder();
    let link = |target: &str, name: &str| {
        std::os::unix::fs::symlink(target, dir.path().join(name)).unwrap();
    };
    link(&elsewhere, "linked");
    link("/nowhere/at/all", "broken");
    std::fs::write(dir.path().join("file"), "x").unwrap();
    link(dir.path().join("file").to_str().unwrap(), "to-a-file");
    assert_eq!(dirs(&engine, &root).await.unwrap(), ["linked"]);
}

#[tokio::test]
async fn a_missing_local_folder_is_gone_and_a_file_is_no_folder() {
    let (engine, (dir, root)) = (engine(), folder());
    assert_eq!(
        class(dirs(&engine, &format!("{root}/nothing")).await),
        Some(Class::Gone)
    );
    std::fs::write(dir.path().join("file"), "x").unwrap();
    assert_eq!(
        class(dirs(&engine, &format!("{root}/file")).await),
        Some(Class::Gone)
    );
    assert!(dirs(&engine, &root).await.unwrap().is_empty());
    assert!(
        listed(&engine, &format!("{root}/nothing"), 0)
            .await
            .is_empty()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn of_puts_if_absent_exactly_one_wins() {
    let (engine, (_dir, root)) = (engine(), folder());
    let uri = format!("{root}/_lancefleet/fleet.json");
    let puts = (0..8).map(|who| {
        let (engine, uri) = (engine.clone(), uri.clone());
        tokio::spawn(async move {
            create_at(&engine, &uri, &who.to_string())
                .await
                .map(|_| who)
        })
    });
    let mut won = Vec::new();
    for ended in futures::future::join_all(puts).await {
        match ended.unwrap() {
            Ok(who) => won.push(who.to_string()),
            Err(fault) => assert_eq!(fault.class, Class::Exists),
        }
    }
    assert_eq!(won, [get_at(&engine, &uri).await.unwrap()]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_sees_an_object_whole_or_not_at_all() {
    let (engine, (_dir, root)) = (engine(), folder());
    let uri = format!("{root}/page");
    let bodies = ["a".repeat(300_000), "b".repeat(500_000)];
    put_at(&engine, &uri, &bodies[0]).await.unwrap();
    let writer = {
        let (engine, uri, bodies) = (engine.clone(), uri.clone(), bodies.clone());
        tokio::spawn(async move {
            for round in 0..40 {
                put_at(&engine, &uri, &bodies[round % 2]).await.unwrap();
            }
        })
    };
    while !writer.is_finished() {
        let body = get_at(&engine, &uri).await.unwrap();
        assert!(bodies.contains(&body), "a mixture of {} bytes", body.len());
    }
    writer.await.unwrap();
}

#[tokio::test]
async fn what_a_put_says_a_get_and_a_list_say_too() {
    let (engine, (_dir, root)) = (engine(), folder());
    let uri = format!("{root}/object");
    let etag = put_at(&engine, &uri, "body").await.unwrap();
    let got = get(engine.clone(), request(json!({ "uri": uri })), Bytes::new())
        .await
        .unwrap();
    let object = &listed(&engine, &root, 0).await[0];
    assert_eq!(got.json["etag"], etag);
    assert_eq!(object["etag"], etag);
    assert_eq!(object["time"], got.json["time"]);
    let age = chrono::Utc::now().timestamp_millis() - object["time"].as_i64().unwrap();
    assert!((0..60_000).contains(&age), "{age} ms old");
    let changed = put_at(&engine, &uri, "longer body").await.unwrap();
    assert_ne!(changed, etag);
}

#[tokio::test]
async fn a_list_goes_down_all_the_way_in_order_and_ends_at_its_limit() {
    let (engine, (_dir, root)) = (engine(), folder());
    for name in ["b/2", "a", "b/1/x", "c"] {
        put_at(&engine, &format!("{root}/{name}"), "x")
            .await
            .unwrap();
    }
    let names = async |limit| -> Vec<String> {
        let objects = listed(&engine, &format!("{root}/"), limit).await;
        let uris = objects.iter().map(|object| object["uri"].as_str().unwrap());
        uris.map(|uri| uri.strip_prefix(&format!("{root}/")).unwrap().to_owned())
            .collect()
    };
    assert_eq!(names(0).await, ["a", "b/1/x", "b/2", "c"]);
    assert_eq!(names(2).await, ["a", "b/1/x"]);
}

#[tokio::test]
async fn deleting_ignores_what_is_absent_and_touches_nothing_else() {
    let (engine, (dir, root)) = (engine(), folder());
    for name in ["round/page-1", "round/page-2", "kept/object"] {
        put_at(&engine, &format!("{root}/{name}"), "x")
            .await
            .unwrap();
    }
    let page = |number: u32| format!("{root}/round/page-{number}");
    let deleted = delete_all(&engine, &[&page(1), &page(3)]).await.unwrap();
    assert_eq!(deleted, 1);
    assert!(dir.path().join("round/page-2").exists());
    assert_eq!(delete_all(&engine, &[&page(2)]).await.unwrap(), 1);
    assert!(!dir.path().join("round").exists(), "an empty folder goes");
    assert!(dir.path().join("kept/object").exists());
}

#[tokio::test]
async fn a_folder_is_never_deleted_and_one_bad_uri_spares_the_others() {
    let (engine, (dir, root)) = (engine(), folder());
    let object = format!("{root}/dir/object");
    put_at(&engine, &object, "x").await.unwrap();
    let slash = delete_all(&engine, &[&object, &format!("{root}/dir/")]).await;
    assert_eq!(class(slash), Some(Class::Invalid));
    assert!(dir.path().join("dir/object").exists());
    assert!(
        delete_all(&engine, &[&format!("{root}/dir")])
            .await
            .is_err()
    );
    assert!(dir.path().join("dir/object").exists());
    let bucket = put_at(&engine, "memory:///", "x").await;
    assert_eq!(class(bucket), Some(Class::Invalid), "the root of a store");
}

#[tokio::test]
async fn a_file_url_names_the_same_object_as_its_path() {
    let (engine, (_dir, root)) = (engine(), folder());
    put_at(&engine, &format!("file://{root}/a%20b"), "x")
        .await
        .unwrap();
    assert_eq!(get_at(&engine, &format!("{root}/a b")).await.unwrap(), "x");
    let object = &listed(&engine, &format!("file://{root}"), 0).await[0];
    assert_eq!(object["uri"], format!("{root}/a b"));
}
