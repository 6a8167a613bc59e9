//! Object stores in trouble.

use serde_json::json;
use tokio::net::TcpListener;

use super::trouble::classes;
use super::*;

fn s3_engine(endpoint: &str, retries: &str) -> Arc<Engine> {
    let options = [
        ("aws_endpoint", endpoint),
        ("aws_region", "us-east-1"),
        ("aws_access_key_id", "test"),
        ("aws_secret_access_key", "test"),
        ("allow_http", "true"),
        ("client_max_retries", retries),
        ("client_retry_timeout", "5"),
    ];
    let owned = options.map(|(key, value)| (key.to_owned(), value.to_owned()));
    Arc::new(Engine::with_options(owned.into()))
}

/// A store that takes connections and never answers.
#[tokio::test]
async fn a_silent_store_times_out_and_hurts_nobody_else() {
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let engine = s3_engine(&format!("http://{}", silent.local_addr().unwrap()), "0");
    let started = std::time::Instant::now();
    let (observed, probed) =
        classes(&engine, "s3://bucket/table.lance", &json!({"version": 1})).await;
    assert_eq!((observed.as_str(), probed.as_str()), ("timeout", "timeout"));
    assert!(started.elapsed().as_secs() < 15);
}

/// A store that answers every request with one status.
async fn answering(status: &'static str) -> String {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut connection, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut request = [0; 8192];
                while matches!(connection.read(&mut request).await, Ok(read) if read > 0) {
                    let answer = format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n");
                    if connection.write_all(answer.as_bytes()).await.is_err() {
                        return;
                    }
                }
            });
        }
    });
    format!("http://{address}")
}

#[tokio::test]
async fn a_stores_refusal_and_its_troubles_have_their_classes() {
    for (status, expected) in [
        ("403 Forbidden", "denied"),
        ("401 Unauthorized", "denied"),
        ("503 Slow Down", "unreachable"),
        ("500 Internal Server Error", "unreachable"),
        ("429 Too Many Requests", "unreachable"),
    ] {
        let engine = s3_engine(&answering(status).await, "1");
        let answer = classes(&engine, "s3://bucket/table.lance", &json!({"version": 1})).await;
        assert_eq!(
            answer,
            (expected.to_owned(), expected.to_owned()),
            "{status}"
        );
    }
    let nobody = s3_engine("http://127.0.0.1:1", "0");
    let answer = classes(&nobody, "s3://bucket/table.lance", &json!({"version": 1})).await;
    assert_eq!(answer, ("unreachable".to_owned(), "unreachable".to_owned()));
}
